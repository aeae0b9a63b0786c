"""Statistics that PostgreSQL plans with are refreshed when an offering is published."""

from datetime import UTC, datetime

import pytest
from django.db import connections

from broker.models import OfferingState
from broker.services.inventory import offering_admin
from broker.services.inventory.table_statistics import refresh_statistics
from config.queues import QUEUE_BY_TASK
from ports import outbox
from tenants.services.actors import SYSTEM
from tests.database import OwnDatabase
from tests.simulation import create_gpus, offering

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.django_db
def test_publishing_asks_for_new_statistics() -> None:
    create_gpus(1)
    row = offering()
    row = offering_admin.set_offering_state(row, OfferingState.RETIRED, actor=SYSTEM, now=NOW)
    asked: list[str] = []
    with outbox.captured(lambda *message: asked.append(str(message))):
        offering_admin.set_offering_state(row, OfferingState.PUBLISHED, actor=SYSTEM, now=NOW)
    assert any("broker.refresh_statistics" in message for message in asked)
    assert "broker.refresh_statistics" in QUEUE_BY_TASK


def test_the_statistics_know_of_new_leases(own_database: OwnDatabase) -> None:
    def known() -> int:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'broker_offering'")
            return int(cursor.fetchone()[0])

    create_gpus(1)
    before = known()
    refresh_statistics()
    assert known() > max(before, 0)
