"""Random prepaid months against their holds."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.models import Grant
from billing.services.funds.wallets import wallet_balances
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from billing.services.invoicing.month_close import close_month
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import run_metering
from tests.billing.histories import EURO, set_price
from tests.billing.wallets.prepaid_tenants import give_credit, held_cents, make_prepaid
from tests.simulation import Simulation, TenantContext, create_tenant, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 3)),
        st.tuples(st.just("wait"), st.integers(1, 50)),
        st.tuples(st.just("blind"), st.integers(30, 200)),  # nobody looks meanwhile
        st.tuples(st.just("release"), st.integers(0, 3)),
        st.tuples(st.just("credit"), st.integers(50, 300)),
        st.tuples(st.just("price"), st.integers(1, 4)),
    ),
    max_size=8,
)


def active_leases(owner: TenantContext) -> list[Lease]:
    with tenant_scope(owner.tenant.pk):
        return list(Lease.objects.filter(state=LeaseState.ACTIVE).order_by("pk"))


def apply_step(sim: Simulation, owner: TenantContext, step: str, many: int) -> int:
    """Apply one event; return the money received."""
    if step == "ask":
        with suppress(PaymentRequired):
            sim.request_lease(owner, offering(), quantity=many, max_duration_s=5 * 3600)
        sim.run(30)
    elif step == "wait":
        for _ in range(-(-many // 5)):
            sim.run(300)
            run_metering(sim)
    elif step == "blind":
        sim.run(many * 60)
    elif step == "release" and (running := active_leases(owner)):
        sim.release_lease(reload_lease(running[many % len(running)]))
    elif step == "price":
        set_price(offering(), many * EURO, since=sim.now.replace(microsecond=0) + timedelta(minutes=1))
    elif step == "credit":
        give_credit(owner, many, now=sim.now)
        return many
    sim.run(5)
    run_metering(sim)
    return 0


@pytest.mark.deep
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, first=st.integers(0, 600))
def test_a_prepaid_month_never_costs_more_than_was_held(
    kestrel: TenantContext, steps: list[tuple[str, int]], first: int
) -> None:
    with transaction.atomic(), simulate() as sim:  # each history begins with the same ids
        run_history(sim, steps, first)
        transaction.set_rollback(True)


def run_history(sim: Simulation, steps: list[tuple[str, int]], first: int) -> None:
    sim.clock.at = sim.clock.at.replace(day=2)
    owner, there = create_tenant("Heron"), first
    make_prepaid(owner, now=sim.now)
    if first:
        give_credit(owner, first, now=sim.now)
    for step, many in steps:
        there += apply_step(sim, owner, step, many)
        assert held_cents(owner) <= there
    for lease in active_leases(owner):
        sim.release_lease(lease)
    for _ in range(4):
        sim.run(300)
        run_metering(sim)
    assert held_cents(owner) <= there
    sim.clock.at = sim.clock.at.replace(month=12, day=1, hour=1)
    run_metering(sim)
    invoice = close_month.close_period(owner.tenant, "2026-11", now=sim.now)
    assert held_cents(owner) == 0
    if invoice is None:
        return
    with tenant_scope(owner.tenant.pk):
        ours = sum(g.minor for g in Grant.objects.filter(idem__startswith="overrun "))
        assert wallet_balances.wallet_funds(owner.tenant, now=sim.now).taken == 0
    assert invoice.to_pay == 0
    assert invoice.total <= there + ours
