"""Metrics count what needs attention, not what goes well."""

from datetime import timedelta

import pytest
from django.db import connection

from broker.models import Gpu
from config import metrics
from ports import clock, ids, outbox
from tests.simulation import Simulation, create_gpus, create_tenant, offering

pytestmark = pytest.mark.django_db


def values() -> dict[str, float]:
    return {family.name: family.samples[0].value for family in metrics.database_gauges()}


def test_messages_that_are_not_due_yet_are_no_reason_for_an_alert() -> None:
    now = clock.now()
    for number in range(3):
        outbox.enqueue("broker.reconcile_lease", f"lse_{number}", now=now, after_s=3600)
    before = values()
    assert (before["gpubroker_outbox_pending"], before["gpubroker_outbox_due"]) == (3, 0)
    assert before["gpubroker_outbox_oldest_due_seconds"] == 0
    outbox.enqueue("broker.reconcile_lease", "lse_late", now=now - timedelta(minutes=2))
    after = values()
    assert (after["gpubroker_outbox_pending"], after["gpubroker_outbox_due"]) == (4, 1)
    assert 120 <= after["gpubroker_outbox_oldest_due_seconds"] < 180


def test_free_gpus_are_counted_by_model(sim: Simulation) -> None:
    create_gpus(3)
    sim.request_lease(create_tenant(), offering("whole-gpu"))
    sim.run(30)
    Gpu.objects.filter(pk=Gpu.objects.order_by("-index").values("pk")[:1]).update(health="unhealthy")
    [sample] = metrics.free_gpus_gauge().samples
    assert (sample.labels, sample.value) == ({"model": "H100-80GB"}, 1.0)


def test_the_time_from_request_to_active_is_told_of_the_latest_leases(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert metrics.start_times_gauge().samples == []
    create_gpus(2)
    sim.request_lease(create_tenant(), offering("whole-gpu"))
    sim.run(60)
    assert metrics.start_times_gauge().samples == [], "the simulation's ids are from long ago"
    monkeypatch.setattr(ids, "first_at", lambda prefix, at: f"{prefix}_0")
    took = {sample.labels["quantile"]: sample.value for sample in metrics.start_times_gauge().samples}
    assert set(took) == {"0.5", "0.95"}
    assert 0 < took["0.5"] <= 60


def test_rating_lag_is_the_age_of_the_oldest_usage_that_is_not_rated(sim: Simulation) -> None:
    assert values()["gpubroker_rating_lag_seconds"] == 0
    create_gpus(1)
    tenant = create_tenant()
    lease = sim.request_lease(tenant, offering("whole-gpu"))
    sim.run(60)
    sim.release_lease(lease)
    sim.run(60)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")
    assert values()["gpubroker_rating_lag_seconds"] > 0
