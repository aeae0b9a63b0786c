"""What a lease costs so far is what it would be charged if it ended now, also while nobody hears from it."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from billing.models import RatedCharge
from billing.services import earnings, rating, spend
from broker.domain.states import Condition
from broker.models import Cluster, Lease
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, LONG_AGO, at, customer, exactly, reprice, runs, sold
from tests.world import Home, Life, alive, fleet, fresh, home, offering

pytestmark = pytest.mark.django_db
UNHEARD = {str(Condition.UNREACHABLE): "its node lost contact"}
A_WHILE = timedelta(minutes=20, seconds=10.7)


@pytest.fixture
def life() -> Iterator[Life]:
    with alive() as life:
        yield life


@pytest.fixture
def kestrel(life: Life) -> Home:
    fleet()
    reprice(offering("1g.10gb"), EURO, since=LONG_AGO)
    return home("Kestrel")


def active(life: Life, owner: Home) -> Lease:
    return life.lease(owner, offering("1g.10gb"), max_duration_s=2 * HOUR)


def so_far(lease: Lease, life: Life) -> int:
    with as_tenant(lease.tenant_id):
        cost = spend.costs([lease.pk], now=life.now).get(lease.pk, spend.Cost.nothing("EUR"))
    return cost.exact_num


def earned(life: Life) -> int:
    with as_staff():
        return earnings.over((life.now - timedelta(days=2), life.now))[0].get("EUR", 0)


def charged(lease: Lease, life: Life) -> int:
    """End it now, and return what that comes to."""
    life.release(lease)
    rating.rate(now=life.now)
    with as_tenant(lease.tenant_id):
        return sum(int(each.exact_num) for each in RatedCharge.objects.filter(lease_id=lease.pk))


def changed(lease: Lease, **columns: Any) -> None:
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(**columns)


@pytest.mark.parametrize("silent", [None, 30.2, 400.9, 3000])
@pytest.mark.parametrize("seen", [None, 20.4, 600.1])
@pytest.mark.parametrize("conditions", [{}, {str(Condition.DEGRADED): "ill"}, UNHEARD])
def test_the_cost_so_far_is_what_an_end_now_would_charge(
    life: Life, kestrel: Home, silent: float | None, seen: float | None, conditions: dict[str, str]
) -> None:
    lease = active(life, kestrel)
    life.clock.at += A_WHILE
    changed(
        lease,
        conditions=conditions,
        seen_at=None if seen is None else life.now - timedelta(seconds=seen),
    )
    if silent:
        Cluster.objects.update(silent_since=life.now - timedelta(seconds=silent))
    before, told = so_far(lease, life), earned(life)
    assert before == told == charged(lease, life)
    assert before == so_far(lease, life) == earned(life)


def test_nothing_after_its_end_is_counted_however_late_somebody_looks(life: Life, kestrel: Home) -> None:
    lease = active(life, kestrel)
    life.clock.at += timedelta(hours=5)
    assert so_far(lease, life) == earned(life) == 2 * HOUR * EURO == charged(lease, life)


def test_whoever_is_heard_again_is_counted_again(life: Life, kestrel: Home) -> None:
    lease = active(life, kestrel)
    life.clock.at += A_WHILE
    Cluster.objects.update(silent_since=life.now - timedelta(minutes=5))
    changed(lease, seen_at=life.now - timedelta(minutes=6))
    silent = so_far(lease, life)
    Cluster.objects.update(silent_since=None)
    assert so_far(lease, life) == silent + 300 * EURO


def test_many_leases_in_any_standing_cost_what_their_end_would_charge(life: Life, kestrel: Home) -> None:
    chance = Random(3)
    leases = [active(life, kestrel) for _ in range(24)]
    life.clock.at += timedelta(hours=1, minutes=50)
    Cluster.objects.update(silent_since=life.now - timedelta(minutes=10))
    for lease in leases:
        life.clock.at += timedelta(seconds=chance.uniform(0, 40))
        changed(
            lease,
            conditions=chance.choice(({}, UNHEARD)),
            seen_at=chance.choice((None, life.now - timedelta(seconds=chance.uniform(0, 3000)))),
        )
    before = {lease.pk: so_far(lease, life) for lease in leases}
    with as_tenant(kestrel.tenant.pk):
        assert exactly(LONG_AGO, life.now) == sum(before.values())
    assert {lease.pk: charged(lease, life) for lease in leases} == before


def test_a_lease_unheard_since_last_month_costs_nothing_this_month() -> None:
    tenant, project = customer()
    lost, well = (runs(project, sold(EURO), at("2026-10-30 12:00:00")) for _ in range(2))
    changed(lost, conditions=UNHEARD, seen_at=at("2026-10-31 12:00:00"))
    month, now = at("2026-11-01 00:00:00"), at("2026-11-01 01:00:00")
    with as_tenant(tenant.pk):
        assert exactly(month, now) == HOUR * EURO
        assert exactly(LONG_AGO, now) == (24 + 37) * HOUR * EURO
        found = spend.costs([lost.pk, well.pk], now=now)
    assert (found[lost.pk].until, found[well.pk].until) == (at("2026-10-31 12:00:00"), now)
    assert fresh(lost).state == "active"
