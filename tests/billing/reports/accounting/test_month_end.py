"""Open invoices by age, unbilled and deferred revenue at a month end."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import JournalSettings
from billing.services.invoicing import drafts
from billing.services.ledger import ledger_balances
from billing.services.rating import lease_rating
from billing.services.reports.accounting import month_end
from billing.services.reports.accounting.month_exports import export_month
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, process_payment, request_payment
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate

pytestmark = pytest.mark.django_db
DAY, FAR = timedelta(days=1), utc("2027-06-01 00:00:00")
OCTOBER_END = utc("2026-11-01 00:00:00")


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def receivables() -> int:
    with staff_scope():
        return sum(each.minor for each in ledger_balances.amounts_owed_by_all())


def test_open_invoices_add_up_to_the_receivables_and_leave_out_what_was_paid() -> None:
    create_october_invoice_of(200)
    paid, partly = create_october_invoice_of(300), create_october_invoice_of(400)
    process_payment(request_payment(paid))
    issue_note(partly, {1: 100})
    with staff_scope():
        rows = month_end.open_invoices(at=FAR)
    assert sorted(row.minor for row in rows) == [238, 357]
    assert sum(row.minor for row in rows) == receivables()


def test_an_invoice_was_still_open_before_it_was_paid() -> None:
    invoice = create_october_invoice_of(300)
    with staff_scope():
        assert month_end.open_invoices(at=NOW) == []
        (row,) = month_end.open_invoices(at=NOW + timedelta(seconds=1))
    assert (row.number, row.minor, row.tenant_id) == (str(invoice), 357, invoice.tenant_id)


@pytest.mark.parametrize(
    ("days", "age"), [(0, "Not due"), (1, "1–30 days"), (30, "1–30 days"), (31, "31–60 days"), (61, "61–90 days"),
                      (91, "Over 90 days")],
)  # fmt: skip
def test_ages_are_whole_days_after_the_due_date(days: int, age: str) -> None:
    invoice = create_october_invoice_of(300)
    assert invoice.due_at is not None
    with staff_scope():
        (row,) = month_end.open_invoices(at=invoice.due_at + days * DAY)
    assert (row.days_overdue, row.age) == (days, age)
    ((currency, brackets, total),) = month_end.sum_by_age([row])
    assert (currency, sum(each.minor for each in brackets), total.minor) == ("EUR", 357, 357)


def test_usage_of_a_month_is_unbilled_until_its_invoice_is_final() -> None:
    invoice = create_october_invoice_of(200, 105)
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-11-05 00:00:00"), 2 * HOUR)
    lease_rating.rate_tenant_leases(tenant, now=utc("2026-11-06 00:00:00"))
    drafts.refresh_drafts(tenant, now=utc("2026-11-06 00:00:00"))
    with staff_scope():
        at_october = month_end.unbilled_months(at=OCTOBER_END)
        at_november = month_end.unbilled_months(at=utc("2026-12-01 00:00:00"))
    assert [(row.month, row.number, row.minor) for row in at_october] == [("2026-10", str(invoice), 305)]
    assert [(row.month, row.number, row.minor) for row in at_november] == [("2026-11", "", 200)]


def test_balances_and_credit_are_deferred_and_equal_the_ledger() -> None:
    invoice = create_october_invoice_of(300)
    process_payment(request_payment(invoice))
    issue_note(invoice, {1: 100})
    with tenant_scope(invoice.tenant_id):
        tenant = invoice.tenant
    create_grant(tenant, 250)
    with staff_scope():
        (row,) = month_end.deferred_revenue(at=FAR)
        booked = {line.type: line.credit for line in ledger_balances.stored_trial_balance()[0].lines}
    assert (row.prepaid, row.granted) == (119, 250) == (booked["wallet_paid"], booked["wallet_promo"])


def test_the_files_have_the_same_rows() -> None:
    invoice = create_october_invoice_of(300)
    create_grant(create_customer()[0], 250)
    with staff_scope():
        made = {
            kind: export_month(kind, "2026-11", JournalSettings(), now=NOW).content.decode().splitlines()
            for kind in ("open-invoices", "unbilled", "deferred", "journal")
        }
    assert f",{invoice},2026-10,2026-11-01,2026-11-15,EUR,3.570000,3.570000,16,1–30 days" in made["open-invoices"][1]
    assert made["unbilled"] == ["tenant,tenant_name,month,invoice,number,finalized,currency,amount"]
    assert made["deferred"][1].endswith(",EUR,0.000000,2.500000")
    assert [row.split(",")[6:11] for row in made["journal"][1:3]] == [
        ["1410", "Receivables", "8400", '"Revenue', ' domestic"'],
        ["1410", "Receivables", "1776", '"VAT payable', ' domestic"'],
    ]


def test_only_one_tenant_can_be_chosen() -> None:
    first, _ = create_october_invoice_of(300), create_october_invoice_of(300)
    with staff_scope():
        assert [row.invoice_id for row in month_end.open_invoices(at=FAR, tenant=first.tenant_id)] == [first.pk]
        assert month_end.deferred_revenue(at=FAR, tenant=first.tenant_id) == []
