"""Bound parameters and prepared statements."""

from datetime import timedelta

import pytest
from django.db import DataError, connection, transaction
from django.db.models import F, Value

from broker.models import Gpu, GpuModel
from ports.models import OutboxMessage
from ports.postgres import sql_statements
from tests import simulation
from tests.simulation import NOW

pytestmark = pytest.mark.django_db
BEYOND = 2**32 + 5  # its lower 32 bits read 5
FLEET = 70_000  # more than the 65,535 values that a statement may have beside it


def create_gpu_model() -> GpuModel:
    simulation.create_gpus(1)
    model = GpuModel.objects.first()
    assert model is not None
    return model


def test_a_number_too_large_for_its_column_is_refused_and_not_truncated() -> None:
    model = create_gpu_model()
    before = model.memory_gb
    for number in (BEYOND, F("memory_gb") + BEYOND):
        with pytest.raises(DataError), transaction.atomic():
            GpuModel.objects.filter(pk=model.pk).update(memory_gb=number)
    model.refresh_from_db()
    assert model.memory_gb == before


def test_a_number_too_large_for_its_column_finds_nothing() -> None:
    GpuModel.objects.filter(pk=create_gpu_model().pk).update(memory_gb=5)
    assert not GpuModel.objects.filter(memory_gb=BEYOND).exists()
    assert not GpuModel.objects.filter(memory_gb__in=[BEYOND, BEYOND + 1]).exists()
    assert not GpuModel.objects.annotate(more=F("memory_gb") + BEYOND).filter(more=10).exists()


def test_frequent_orm_statements_are_prepared() -> None:
    for number in range(8):
        OutboxMessage.objects.create(id=number + 1, task="a", subject=str(number), tenant_id="", at=NOW)
        assert OutboxMessage.objects.get(subject=str(number)).pk == number + 1
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement FROM pg_prepared_statements WHERE statement LIKE %s",
            ['%"ports_outboxmessage"%'],
        )
        planned = [row[0] for row in cursor.fetchall()]
    assert any(sql.startswith("SELECT") for sql in planned)
    assert any(sql.startswith("INSERT") for sql in planned)


def create_message(number: int) -> OutboxMessage:
    return OutboxMessage.objects.create(id=number, task="a", subject=f"s{number}", tenant_id="", at=NOW)


def test_a_list_longer_than_the_parameter_limit_is_one_value() -> None:
    mine, other = create_message(5), create_message(FLEET + 5)
    subjects = [f"s{n}" for n in range(FLEET)]
    assert list(OutboxMessage.objects.exclude(subject__in=subjects)) == [other]
    assert OutboxMessage.objects.filter(pk__in=range(FLEET)).delete()[0] == 1
    assert not OutboxMessage.objects.filter(pk=mine.pk).exists()


def test_a_long_list_of_timestamps_is_one_value() -> None:
    message = create_message(1)
    assert list(
        OutboxMessage.objects.filter(
            at__in=[NOW + timedelta(days=n) for n in range(sql_statements.MIN_ARRAY_LENGTH + 1)]
        )
    ) == [message]


def test_a_long_list_of_related_ids_is_one_value() -> None:
    simulation.create_gpus(2)
    nodes = [f"nod_{n}" for n in range(FLEET)]
    first = Gpu.objects.order_by("pk")[0]
    assert list(Gpu.objects.filter(node__in=[*nodes, first.node_id], pk=first.pk)) == [first]
    assert list(Gpu.objects.filter(node__name__in=[*nodes, first.node.name], pk=first.pk)) == [first]


@pytest.mark.parametrize("count", [1, sql_statements.MIN_ARRAY_LENGTH, sql_statements.MIN_ARRAY_LENGTH + 1])
def test_lists_of_any_length_find_the_same_rows(count: int) -> None:
    mine, other = create_message(1), create_message(count + 1)
    assert list(OutboxMessage.objects.filter(pk__in=range(1, count + 1))) == [mine]
    assert list(OutboxMessage.objects.exclude(pk__in=range(1, count + 1))) == [other]
    assert list(OutboxMessage.objects.filter(pk__in=[1] * 2 * count)) == [mine]
    assert list(OutboxMessage.objects.filter(pk__in=[*range(1, count + 1), None])) == [mine]
    assert list(OutboxMessage.objects.filter(pk__in=[*range(1, count + 1), F("id")]).order_by("pk")) == [
        mine,
        other,
    ]
    assert list(OutboxMessage.objects.filter(task__in=[Value("a")] * 2 * count).order_by("pk")) == [
        mine,
        other,
    ]
    assert list(OutboxMessage.objects.filter(pk__in=OutboxMessage.objects.filter(subject="s1").values("pk"))) == [mine]
