"""The server binds values: numbers arrive whole, and what is asked often is planned once."""

import pytest
from django.db import DataError, connection, transaction
from django.db.models import F

from broker.models import GpuModel
from ports.models import Ring
from tests import world
from tests.world import NOW

pytestmark = pytest.mark.django_db
BEYOND = 2**32 + 5  # its lower 32 bits read 5


def a_model() -> GpuModel:
    world.cards(1)
    model = GpuModel.objects.first()
    assert model is not None
    return model


def test_a_number_too_large_for_its_column_is_refused_and_never_cut() -> None:
    model = a_model()
    before = model.memory_gb
    for number in (BEYOND, F("memory_gb") + BEYOND):
        with pytest.raises(DataError), transaction.atomic():
            GpuModel.objects.filter(pk=model.pk).update(memory_gb=number)
    model.refresh_from_db()
    assert model.memory_gb == before


def test_a_number_too_large_for_its_column_finds_nothing() -> None:
    GpuModel.objects.filter(pk=a_model().pk).update(memory_gb=5)
    assert not GpuModel.objects.filter(memory_gb=BEYOND).exists()
    assert not GpuModel.objects.filter(memory_gb__in=[BEYOND, BEYOND + 1]).exists()
    assert not GpuModel.objects.annotate(more=F("memory_gb") + BEYOND).filter(more=10).exists()


def test_what_the_orm_asks_often_is_planned_once() -> None:
    for number in range(8):
        Ring.objects.create(id=number + 1, task="a", subject=str(number), tenant_id="", at=NOW)
        assert Ring.objects.get(subject=str(number)).pk == number + 1
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement FROM pg_prepared_statements WHERE statement LIKE %s", ['%"ports_ring"%']
        )
        planned = [row[0] for row in cursor.fetchall()]
    assert any(sql.startswith("SELECT") for sql in planned)
    assert any(sql.startswith("INSERT") for sql in planned)
