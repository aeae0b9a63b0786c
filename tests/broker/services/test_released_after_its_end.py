"""Whoever releases or stops a lease whose program ended by itself a moment ago pays until that, not until now."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, Lease
from broker.provisioners.base import order_name
from broker.services.inventory import Rack
from tenants.services.walls import as_tenant
from tests.world import MODEL, REGION, Home, Life, fleet, fresh, home, ledger, offering

HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture
def kestrel(db: None) -> Home:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    return home("Kestrel")


def written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def sees(lease: Lease, name: str, *, began: datetime, ended: datetime | None) -> None:
    """Let the cluster's agent have seen a pod of a lease, which runs or has ended."""
    state: dict[str, Any] = {"running": {"startedAt": written(began)}}
    if ended:
        state = {"terminated": {"exitCode": 0, "startedAt": written(began), "finishedAt": written(ended)}}
    status = {"phase": "Succeeded" if ended else "Running", "containerStatuses": [{"state": state}]}
    ClusterObject.objects.create(
        cluster=Cluster.objects.get(),
        kind="Pod",
        namespace="gt-1",
        name=name,
        uid=f"u-{name}",
        version=5,
        order_name=order_name(lease.pk, lease.generation),
        body={"metadata": {"name": name, "uid": f"u-{name}"}, "status": status},
        seen_at=began,
    )


def charged_until(lease: Lease) -> datetime:
    steps = ledger(lease)
    return next(step.at for step in steps if step.before == "active")


def test_a_lease_that_is_released_after_its_pod_ended_costs_until_that(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("card"))
    ended = life.now + HALF_A_MINUTE
    sees(lease, "p-0", began=life.now, ended=ended)
    life.clock.at = ended + HALF_A_MINUTE
    life.release(lease)
    assert charged_until(lease) == fresh(lease).ended_at == ended.replace(microsecond=0)


def test_a_lease_that_is_stopped_after_its_pod_ended_has_spent_until_that(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    lease = life.lease(kestrel, offering("card"), volume=volume.pk)
    began, ended = life.now, life.now + HALF_A_MINUTE
    sees(lease, "p-0", began=began, ended=ended)
    life.clock.at = ended + HALF_A_MINUTE
    life.stop(lease, kestrel)
    assert charged_until(lease) == ended.replace(microsecond=0)
    assert lease.active_at
    assert fresh(lease).spent_s == int((charged_until(lease) - lease.active_at).total_seconds())


@pytest.mark.parametrize("conditions", [{}, {"unreachable": "its node says nothing"}])
def test_an_end_that_was_seen_after_its_cluster_fell_silent_is_charged(
    life: Life, kestrel: Home, conditions: dict[str, str]
) -> None:
    lease = life.lease(kestrel, offering("card"))
    Cluster.objects.update(silent_since=life.now)
    ended = life.now + HALF_A_MINUTE
    sees(lease, "p-0", began=life.now, ended=ended)
    with as_tenant(lease.tenant_id):
        Lease.objects.update(conditions=conditions)
    ClusterObject.objects.update(seen_at=ended)
    life.clock.at = ended + HALF_A_MINUTE
    life.release(lease)
    assert charged_until(lease) == ended.replace(microsecond=0)


def test_a_lease_whose_pod_runs_costs_until_it_is_released(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("card"))
    sees(lease, "p-0", began=life.now, ended=None)
    life.clock.at += HALF_A_MINUTE
    life.release(lease)
    assert charged_until(lease) == life.now.replace(microsecond=0)


@pytest.mark.parametrize("many", [1, 2])
def test_a_gang_has_ended_when_all_of_its_pods_have(life: Life, kestrel: Home, many: int) -> None:
    lease, began = life.lease(kestrel, offering("card"), quantity=2), life.now
    for rank in range(many):
        sees(lease, f"p-{rank}", began=began, ended=began + (rank + 1) * HALF_A_MINUTE)
    life.clock.at = began + 3 * HALF_A_MINUTE
    life.release(lease)
    end = began + 2 * HALF_A_MINUTE if many == 2 else life.now  # of the other nobody has seen anything
    assert charged_until(lease) == end.replace(microsecond=0)


def test_an_end_that_is_yet_to_come_by_our_clock_is_none(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("card"))
    sees(lease, "p-0", began=life.now, ended=life.now + timedelta(hours=1))
    life.clock.at += HALF_A_MINUTE
    life.release(lease)
    assert charged_until(lease) == life.now.replace(microsecond=0)


@pytest.mark.parametrize(("later_s", "believed"), [(9, True), (11, False)])
def test_an_end_after_which_a_worker_saw_it_run_was_none(
    life: Life, kestrel: Home, later_s: int, believed: bool
) -> None:
    """An agent that is away leaves the rows behind that it had."""
    lease = life.lease(kestrel, offering("card"))
    ended = (life.now + HALF_A_MINUTE).replace(microsecond=0)
    sees(lease, "p-0", began=life.now, ended=ended)
    life.clock.at = ended + HALF_A_MINUTE
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=ended + timedelta(seconds=later_s))
    life.release(lease)
    assert charged_until(lease) == (ended if believed else life.now.replace(microsecond=0))


def test_an_end_that_was_written_down_after_a_worker_had_looked_was_the_end(
    life: Life, kestrel: Home
) -> None:
    """A kubelet that was away reports it late: until then every look showed that it ran."""
    lease = life.lease(kestrel, offering("card"))
    ended = (life.now + HALF_A_MINUTE).replace(microsecond=0)
    looked = ended + HALF_A_MINUTE
    sees(lease, "p-0", began=life.now, ended=ended)
    ClusterObject.objects.update(seen_at=looked + timedelta(seconds=1))
    life.clock.at = looked + timedelta(seconds=2)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=looked)
    life.release(lease)
    assert charged_until(lease) == ended
