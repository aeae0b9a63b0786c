"""Fleet revenue compared with charges."""

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Sum

from billing.models import PriceVersion, RatedCharge
from billing.services.rating import lease_rating
from billing.services.reports import conservation, earnings
from broker.models import Node, NodeState
from broker.services.reports import fleet_gpus, fleet_usage
from broker.services.reports.gpu_usage import SCALE, UnitUse
from tenants.models import Tenant
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests import simulation
from tests.simulation import Simulation, TenantContext

pytestmark = pytest.mark.django_db


def revenue_of_last(sim: Simulation, seconds: int) -> dict[str, int]:
    with staff_scope():
        return earnings.revenue_over((sim.now - timedelta(seconds=seconds), sim.now))[0]


def test_hourly_revenue_adds_up_all_active_slices_by_currency(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"), quantity=3)
    sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    with staff_scope():
        assert earnings.hourly_revenue(now=sim.now) == {"EUR": 3 * 400_000_000}


def test_a_lease_without_a_price_in_its_currency_earns_nothing(sim: Simulation, kestrel: TenantContext) -> None:
    tern = simulation.create_tenant("Tern")
    with tenant_scope(tern.tenant.pk):
        Tenant.objects.filter(pk=tern.tenant.pk).update(currency="USD")
    lease = sim.create_lease(tern, simulation.offering("1g.10gb"))
    with staff_scope():
        assert earnings.hourly_revenue(now=sim.now) == {}
        assert earnings.hourly_prices_of([lease.pk], now=sim.now) == {}


def test_the_hourly_price_is_reported_per_lease(sim: Simulation, kestrel: TenantContext) -> None:
    one, whole = (sim.create_lease(kestrel, simulation.offering(profile)) for profile in ("1g.10gb", "whole-gpu"))
    with staff_scope():
        assert earnings.hourly_prices_of([one.pk, whole.pk], now=sim.now) == {
            one.pk: (400_000_000, "EUR"),
            whole.pk: (2_800_000_000, "EUR"),
        }


def test_a_stopped_lease_keeps_its_revenue(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"), volume=sim.create_volume(kestrel).pk)
    sim.run(600)
    earned = revenue_of_last(sim, 600)
    sim.stop_lease(lease, kestrel)
    sim.run(60)
    assert earned["EUR"] <= revenue_of_last(sim, 7200)["EUR"]


def test_revenue_of_an_ended_lease_equals_its_charge(sim: Simulation, kestrel: TenantContext) -> None:
    offering = simulation.offering("2g.20gb")
    lease = sim.create_lease(kestrel, offering, quantity=2)
    sim.run(1234)
    old = PriceVersion.objects.get(offering=offering)
    PriceVersion.objects.filter(pk=old.pk).update(valid=DateTimeTZRange(old.valid.lower, sim.now))
    PriceVersion.objects.create(
        rate_card=old.rate_card,
        offering=offering,
        currency="EUR",
        valid=DateTimeTZRange(sim.now, None),
        nano_per_hour=999_999_999,
        created_at=sim.now,
    )
    sim.run(777)
    sim.release_lease(lease)
    sim.run(60)
    lease_rating.rate_all_leases(now=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        charged = RatedCharge.objects.aggregate(sum=Sum("exact_num"))["sum"]
    assert revenue_of_last(sim, 10_000) == {"EUR": int(charged)}


def test_a_running_lease_earns_until_now_within_the_period(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    sim.run(3000)
    assert revenue_of_last(sim, 100) == {"EUR": 100 * 400_000_000}
    with staff_scope():
        long_ago = (sim.now - timedelta(days=9), sim.now - timedelta(days=8))
        just_now = (sim.now - timedelta(seconds=10), sim.now)
        assert earnings.revenue_over(long_ago, just_now) == [{}, {"EUR": 10 * 400_000_000}]


def test_fleet_usage_equals_the_conservation_report(sim: Simulation, kestrel: TenantContext) -> None:
    first, begun = sim.create_lease(kestrel, simulation.offering("3g.40gb")), sim.now - timedelta(seconds=30)
    sim.run(700)
    sim.create_lease(kestrel, simulation.offering("whole-gpu", price_class="spot"))
    sim.release_lease(first)
    sim.run(100)
    simulation.set_node_state(Node.objects.get(), NodeState.DRAINING, sim)
    sim.run(250)
    with staff_scope():
        seen = fleet_usage.measure_fleet_usage(begun, fleet_gpus.load_gpus(), now=sim.now)
    with system_scope():
        kept = conservation.check_conservation(first=begun, last=sim.now)
    pairs = {
        "sold": (UnitUse.SOLD, UnitUse.SPOT),
        "idle": (UnitUse.FREE,),
        "fragmented": (UnitUse.FRAGMENTED,),
        "reserved": (UnitUse.RESERVED,),
        "unhealthy": (UnitUse.UNHEALTHY, UnitUse.MAINTENANCE),
    }
    assert {kind: sum(seen.by_use[use] for use in uses) for kind, uses in pairs.items()} == {
        kind: kept.gpus(kind) * SCALE for kind in pairs
    }
    assert seen.sum_by_use == seen.total == kept.gpus("total") * SCALE
