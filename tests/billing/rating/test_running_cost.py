"""Running cost of leases compared with their charges."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from billing.models import RatedCharge
from billing.services.rating import lease_rating, spend
from billing.services.reports import earnings
from broker.domain.lifecycle.states import LeaseCondition
from broker.models import Cluster, Lease
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    LONG_AGO,
    add_running_lease,
    create_customer,
    create_priced_offering,
    exact_spend,
    set_price,
    utc,
)
from tests.simulation import Simulation, TenantContext, create_fleet, create_tenant, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
UNHEARD = {str(LeaseCondition.UNREACHABLE): "node n01 is unreachable"}
A_WHILE = timedelta(minutes=20, seconds=10.7)


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_fleet()
    set_price(offering("1g.10gb"), EURO, since=LONG_AGO)
    return create_tenant("Kestrel")


def create_active_lease(sim: Simulation, owner: TenantContext) -> Lease:
    return sim.create_lease(owner, offering("1g.10gb"), max_duration_s=2 * HOUR)


def running_cost(lease: Lease, sim: Simulation) -> int:
    with tenant_scope(lease.tenant_id):
        cost = spend.costs_of([lease.pk], now=sim.now).get(lease.pk, spend.LeaseCost.nothing("EUR"))
    return cost.exact_num


def revenue(sim: Simulation) -> int:
    with staff_scope():
        return earnings.revenue_over((sim.now - timedelta(days=2), sim.now))[0].get("EUR", 0)


def end_and_charge(lease: Lease, sim: Simulation) -> int:
    """End a lease now, and return its charge."""
    sim.release_lease(lease)
    lease_rating.rate_all_leases(now=sim.now)
    with tenant_scope(lease.tenant_id):
        return sum(int(each.exact_num) for each in RatedCharge.objects.filter(lease_id=lease.pk))


def update_lease(lease: Lease, **columns: Any) -> None:
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(**columns)


@pytest.mark.parametrize("silent", [None, 30.2, 400.9, 3000])
@pytest.mark.parametrize("seen", [None, 20.4, 600.1])
@pytest.mark.parametrize("conditions", [{}, {str(LeaseCondition.DEGRADED): "ill"}, UNHEARD])
def test_the_running_cost_equals_the_charge_if_the_lease_ended_now(
    sim: Simulation, kestrel: TenantContext, silent: float | None, seen: float | None, conditions: dict[str, str]
) -> None:
    lease = create_active_lease(sim, kestrel)
    sim.clock.at += A_WHILE
    update_lease(
        lease,
        conditions=conditions,
        seen_at=None if seen is None else sim.now - timedelta(seconds=seen),
    )
    if silent:
        Cluster.objects.update(unreachable_since=sim.now - timedelta(seconds=silent))
    before, found = running_cost(lease, sim), revenue(sim)
    assert before == found == end_and_charge(lease, sim)
    assert before == running_cost(lease, sim) == revenue(sim)


def test_the_running_cost_of_an_ended_lease_stops_at_its_end(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_active_lease(sim, kestrel)
    sim.clock.at += timedelta(hours=5)
    assert running_cost(lease, sim) == revenue(sim) == 2 * HOUR * EURO == end_and_charge(lease, sim)


def test_the_running_cost_continues_when_the_cluster_answers_again(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_active_lease(sim, kestrel)
    sim.clock.at += A_WHILE
    Cluster.objects.update(unreachable_since=sim.now - timedelta(minutes=5))
    update_lease(lease, seen_at=sim.now - timedelta(minutes=6))
    silent = running_cost(lease, sim)
    Cluster.objects.update(unreachable_since=None)
    assert running_cost(lease, sim) == silent + 300 * EURO


@pytest.mark.deep
def test_running_costs_of_leases_in_any_condition_equal_their_charges(sim: Simulation, kestrel: TenantContext) -> None:
    chance = Random(3)
    leases = [create_active_lease(sim, kestrel) for _ in range(24)]
    sim.clock.at += timedelta(hours=1, minutes=50)
    Cluster.objects.update(unreachable_since=sim.now - timedelta(minutes=10))
    for lease in leases:
        sim.clock.at += timedelta(seconds=chance.uniform(0, 40))
        update_lease(
            lease,
            conditions=chance.choice(({}, UNHEARD)),
            seen_at=chance.choice((None, sim.now - timedelta(seconds=chance.uniform(0, 3000)))),
        )
    before = {lease.pk: running_cost(lease, sim) for lease in leases}
    with tenant_scope(kestrel.tenant.pk):
        assert exact_spend(LONG_AGO, sim.now) == sum(before.values())
    assert {lease.pk: end_and_charge(lease, sim) for lease in leases} == before


def test_a_lease_unreachable_since_last_month_costs_nothing_this_month() -> None:
    tenant, project = create_customer()
    lost, well = (
        add_running_lease(project, create_priced_offering(EURO), utc("2026-10-30 12:00:00")) for _ in range(2)
    )
    update_lease(lost, conditions=UNHEARD, seen_at=utc("2026-10-31 12:00:00"))
    month, now = utc("2026-11-01 00:00:00"), utc("2026-11-01 01:00:00")
    with tenant_scope(tenant.pk):
        assert exact_spend(month, now) == HOUR * EURO
        assert exact_spend(LONG_AGO, now) == (24 + 37) * HOUR * EURO
        found = spend.costs_of([lost.pk, well.pk], now=now)
    assert (found[lost.pk].until, found[well.pk].until) == (utc("2026-10-31 12:00:00"), now)
    assert reload_lease(lost).state == "active"
