"""Prepaid holds after a change of the customer's tax treatment."""

from typing import Any
from unittest import mock

import pytest

from billing.models import BillingDetails, Grant, Invoice, Wallet
from billing.services.funds.wallets import wallet_balances
from billing.services.invoicing.month_close import close_month
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import run_metering
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, PERSON, SWISS, set_billing_details, set_tax_rate
from tests.billing.wallets.prepaid_tenants import (
    available_cents,
    give_credit,
    held_cents,
    make_prepaid,
    set_payment_terms,
)
from tests.simulation import Simulation, TenantContext, offering, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture(autouse=True)
def _rates(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def use_three_hours(sim: Simulation, kestrel: TenantContext, cents: int) -> None:
    """Use three hours as a foreign EU business at a month's end."""
    set_billing_details(kestrel.tenant, ATELIER)
    sim.clock.at = sim.clock.at.replace(day=30, hour=20, minute=0)
    make_prepaid(kestrel)
    give_credit(kestrel, cents)
    lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
    for _ in range(18):
        sim.run(HOUR // 6)
        run_metering(sim)
    sim.release_lease(lease)
    run_metering(sim)


def stored_vat_id(kestrel: TenantContext) -> str:
    with tenant_scope(kestrel.tenant.pk):
        return BillingDetails.objects.get().vat_id


def test_a_vat_number_cannot_be_removed_if_the_wallet_cannot_cover_the_tax(kestrel: TenantContext) -> None:
    with simulate() as sim:
        use_three_hours(sim, kestrel, 310)
        before = held_cents(kestrel)
        with pytest.raises(InvalidValue, match="The wallet lacks") as refused:
            set_billing_details(kestrel.tenant, PERSON)
        assert refused.value.field == "vat_id"
        assert (stored_vat_id(kestrel), held_cents(kestrel)) == (ATELIER.vat_id, before)
        sim.run(HOUR + 600)
        assert close_month.close_due_months(now=sim.now).months == 1
        with tenant_scope(kestrel.tenant.pk):
            invoice = Invoice.objects.get()
            assert (invoice.treatment, invoice.tax, invoice.to_pay) == ("reverse_charge", 0, 0)
            assert Grant.objects.count() == 1


def test_a_sufficient_wallet_holds_the_tax_added_by_a_vat_change(kestrel: TenantContext) -> None:
    with simulate() as sim:
        use_three_hours(sim, kestrel, 400)
        before = held_cents(kestrel)
        set_billing_details(kestrel.tenant, PERSON)
        assert held_cents(kestrel) == -(-before * 120 // 100)
        assert available_cents(kestrel, sim.now) == 400 - held_cents(kestrel)
        sim.run(HOUR + 600)
        assert close_month.close_due_months(now=sim.now).months == 1
        with tenant_scope(kestrel.tenant.pk):
            invoice = Invoice.objects.get()
            assert (invoice.treatment, invoice.to_pay) == ("destination", 0)
            assert invoice.tax * 5 == invoice.total - invoice.tax
            assert Grant.objects.count() == 1  # nothing was ours to pay


def test_an_equal_tax_or_payment_by_invoice_changes_no_hold(kestrel: TenantContext) -> None:
    with simulate() as sim:
        use_three_hours(sim, kestrel, 310)
        before = held_cents(kestrel)
        set_billing_details(kestrel.tenant, SWISS)  # another reason for none
        assert held_cents(kestrel) == before
        set_payment_terms(kestrel, payment="invoice", now=sim.now)
        set_billing_details(kestrel.tenant, PERSON)
        assert stored_vat_id(kestrel) == ""


def test_a_lease_that_waits_for_the_wallet_lock_holds_the_increased_tax(
    kestrel: TenantContext,
) -> None:
    real = wallet_balances.lock_wallet

    def waits(tenant: Tenant) -> Wallet:
        with mock.patch.object(wallet_balances, "lock_wallet", real):
            set_billing_details(kestrel.tenant, PERSON)
        return real(tenant)

    with simulate() as sim:
        set_billing_details(kestrel.tenant, ATELIER)
        make_prepaid(kestrel)
        give_credit(kestrel, 400)
        with mock.patch.object(wallet_balances, "lock_wallet", waits):
            sim.request_lease(kestrel, offering(), max_duration_s=HOUR)
        assert held_cents(kestrel) == 100 + 20 + 2
