"""Grants on taxed invoices."""

from typing import Any

import pytest

from billing.services.ledger import ledger_balances
from tenants.services.rls import staff_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.grants.grant_setup import amounts_drawn, create_grant, remaining_amount
from tests.billing.histories import create_customer, utc
from tests.billing.payments.payable_invoices import NOW, charged_amounts, process_payment, request_payment
from tests.billing.tax.taxed_tenants import LUMEN, charge_amounts, close_taxed_month, set_billing_details, set_tax_rate

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _taxed(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def test_a_grant_pays_a_line_including_its_tax() -> None:
    tenant, project = create_customer()
    set_billing_details(tenant, LUMEN)
    charge_amounts(project, 1000)
    grant = create_grant(tenant, 5000)
    invoice = close_taxed_month(tenant)
    assert (invoice.total, invoice.tax, amounts_drawn(invoice), remaining_amount(grant)) == (
        1190,
        190,
        {grant.pk: 1190},
        3810,
    )


def test_an_expired_grant_pays_usage_before_its_expiry_including_tax() -> None:
    tenant, project = create_customer()
    set_billing_details(tenant, LUMEN)
    charge_amounts(project, 1000)
    grant = create_grant(tenant, 5000, expires_at=utc("2026-10-01 00:30:00"), now=utc("2026-10-01 00:00:00"))
    assert amounts_drawn(close_taxed_month(tenant)) == {grant.pk: 595}


def test_credit_notes_of_a_taxed_invoice_return_the_payment_and_then_the_grant() -> None:
    tenant, project = create_customer()
    set_billing_details(tenant, LUMEN)
    charge_amounts(project, 333, 105)
    grant = create_grant(tenant, 200)
    invoice = close_taxed_month(tenant)
    process_payment(request_payment(invoice), now=NOW)
    first, second = issue_note(invoice, {1: 333}), issue_note(invoice)
    assert first.to_balance + second.to_balance == sum(charged_amounts(invoice)) == invoice.total - 200
    assert (remaining_amount(grant), invoice.total) == (200, first.total + second.total)
    with staff_scope():
        assert (ledger_balances.recomputed_trial_balance()[1], ledger_balances.uncleared_invoices()) == (
            (),
            [],
        )
