"""Write-off of prepaid usage beyond the wallet with a discount."""

import pytest
from django.db.models import Sum

from billing.models import Grant, GrantDraw, Invoice
from billing.services.funds.grants import grant_balances, grant_expiry
from billing.services.ledger import invariant_checks, ledger_balances
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import create_discount
from tests.billing.budgets.budget_setup import run_metering
from tests.billing.histories import HOUR
from tests.billing.wallets.prepaid_tenants import available_cents, close_prepaid_month, give_credit, make_prepaid
from tests.simulation import Simulation, TenantContext, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(priced_tenant: TenantContext) -> TenantContext:
    return priced_tenant


def overrun(sim: Simulation, owner: TenantContext, *, money: int = 300, **discount: int) -> Invoice:
    """Run a prepaid lease beyond its credit, and close the month."""
    make_prepaid(owner)
    give_credit(owner, money)
    create_discount(owner.tenant, first_month="2026-01", **discount)
    lease = sim.create_lease(owner, offering(), max_duration_s=9 * HOUR)
    sim.run(5 * HOUR)
    for _ in range(10):
        sim.run(60)
        run_metering(sim)
    assert reload_lease(lease).end_reason == "unpaid"
    sim.clock.at = sim.clock.at.replace(month=12, day=1, hour=1)
    run_metering(sim)
    invoice = close_prepaid_month(owner, sim)
    assert invoice
    assert invoice.to_pay == 0
    return invoice


def write_off_totals(owner: TenantContext) -> tuple[int, int]:
    """Return the granted write-off, and how much of it was drawn."""
    with tenant_scope(owner.tenant.pk):
        ours = Grant.objects.filter(idem__startswith="overrun ").aggregate(all=Sum("minor"))["all"] or 0
        draws = GrantDraw.objects.filter(grant__idem__startswith="overrun ")
        return ours, draws.aggregate(all=Sum("minor"))["all"] or 0


def test_the_wallet_pays_a_discounted_invoice_that_it_covers(kestrel: TenantContext) -> None:
    with simulate() as sim:
        invoice = overrun(sim, kestrel, percent_bp=5000)
        assert 250 <= invoice.total <= 260
        ours, drawn = write_off_totals(kestrel)
        assert (ours >= 200, drawn) == (True, 0)
        assert available_cents(kestrel, sim.now) == 300 - invoice.total


def test_a_discounted_amount_beyond_the_wallet_is_written_off(kestrel: TenantContext) -> None:
    with simulate() as sim:
        invoice = overrun(sim, kestrel, percent_bp=1000)
        assert 450 <= invoice.total <= 460
        assert write_off_totals(kestrel)[1] == invoice.total - 300
        assert available_cents(kestrel, sim.now) == 0


def test_the_unused_part_of_a_write_off_ends_with_the_month(kestrel: TenantContext) -> None:
    with simulate() as sim:
        overrun(sim, kestrel, percent_bp=1000)
        give_credit(kestrel, 1000, now=sim.now)
        ours, drawn = write_off_totals(kestrel)
        sim.create_lease(kestrel, offering(), max_duration_s=HOUR)
        for _ in range(70):
            sim.run(60)
            run_metering(sim)
        sim.clock.at = sim.clock.at.replace(year=2027, month=1, day=1, hour=1)
        run_metering(sim)
        december = close_prepaid_month(kestrel, sim, "2026-12")
        assert december
        assert december.to_pay == 0
        assert write_off_totals(kestrel) == (ours, drawn)
        grant_expiry.expire_due_grants(now=sim.now)
        with tenant_scope(kestrel.tenant.pk):
            rest = Grant.objects.filter(idem__startswith="overrun ").values_list("pk", flat=True)
            assert grant_balances.remaining_by_grant(kestrel.tenant.pk, rest) == {}
        assert available_cents(kestrel, sim.now) == 1000 - december.total
        with staff_scope():
            assert ledger_balances.recomputed_trial_balance()[1] == ()
            assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []
