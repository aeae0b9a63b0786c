"""Whatever happens to leases, prices, looks and money: what is taken is there, and a month costs no more than that."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.models import Grant
from billing.services import closing
from billing.services.wallets import money
from billing.services.wallets.covering import PaymentRequired
from broker.domain.states import LeaseState
from broker.models import Lease
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import meter
from tests.billing.histories import EURO, reprice
from tests.billing.wallets.pockets import credit, prepaid, taken
from tests.world import Home, Life, alive, fresh, home, offering

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


def leases(owner: Home) -> list[Lease]:
    with as_tenant(owner.tenant.pk):
        return list(Lease.objects.filter(state=LeaseState.ACTIVE).order_by("pk"))


def take(life: Life, owner: Home, step: str, many: int) -> int:
    """Let one thing happen; return what money came in."""
    if step == "ask":
        with suppress(PaymentRequired):
            life.ask(owner, offering(), quantity=many, max_duration_s=5 * 3600)
        life.run(30)
    elif step == "wait":
        for _ in range(-(-many // 5)):
            life.run(300)
            meter(life)
    elif step == "blind":
        life.run(many * 60)
    elif step == "release" and (running := leases(owner)):
        life.release(fresh(running[many % len(running)]))
    elif step == "price":
        reprice(offering(), many * EURO, since=life.now.replace(microsecond=0) + timedelta(minutes=1))
    elif step == "credit":
        credit(owner, many, now=life.now)
        return many
    life.run(5)
    meter(life)
    return 0


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, first=st.integers(0, 600))
def test_what_is_taken_is_there_and_a_month_costs_no_more_than_there_was(
    kestrel: Home, steps: list[tuple[str, int]], first: int
) -> None:
    with transaction.atomic(), alive() as life:  # each history begins with the same ids
        history(life, steps, first)
        transaction.set_rollback(True)


def history(life: Life, steps: list[tuple[str, int]], first: int) -> None:
    life.clock.at = life.clock.at.replace(day=2)
    owner, there = home("Heron"), first
    prepaid(owner, now=life.now)
    if first:
        credit(owner, first, now=life.now)
    for step, many in steps:
        there += take(life, owner, step, many)
        assert taken(owner) <= there
    for lease in leases(owner):
        life.release(lease)
    for _ in range(4):
        life.run(300)
        meter(life)
    assert taken(owner) <= there
    life.clock.at = life.clock.at.replace(month=12, day=1, hour=1)
    meter(life)
    invoice = closing.close_period(owner.tenant, "2026-11", now=life.now)
    assert taken(owner) == 0
    if invoice is None:
        return
    with as_tenant(owner.tenant.pk):
        ours = sum(g.minor for g in Grant.objects.filter(idem__startswith="overrun "))
        assert money.funds(owner.tenant, now=life.now).taken == 0
    assert invoice.to_pay == 0
    assert invoice.total <= there + ours
