"""Minimum spend: shortfall line, proration and limits of changes."""

import csv
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing.models import Invoice, Minimum
from billing.services.agreements import minimums
from billing.services.agreements.minimums import MinimumOverlaps, MinimumPrepaid
from billing.services.documents import csv_exports
from billing.services.funds.accounts import account_terms
from billing.services.funds.accounts.account_terms import HasMinimum
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports.line_explanations import explain_invoice_line
from tenants.models import AuditEvent, Tenant
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import (
    CLOSES,
    NOW,
    START,
    adjustments_of,
    close_and_get_invoice,
    create_discount,
    create_draft,
    line_amounts,
    verify_invoice,
)
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    utc,
)

pytestmark = pytest.mark.django_db
NOVEMBER = utc("2026-11-01 00:00:00")


def create_test_minimum(
    tenant: Tenant, minor: int = 5000, *, since: datetime = NOVEMBER, until: datetime | None = None
) -> Minimum:
    return minimums.create_minimum(tenant, minor=minor, since=since, until=until, actor=OPERATOR, now=min(since, NOW))


def test_a_shortfall_below_the_minimum_is_an_invoice_line() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, offering := create_priced_offering(1_234_567_891), START, 10 * HOUR)
    create_test_minimum(tenant)
    draft = create_draft(tenant)
    assert (line_amounts(draft), draft.total) == ([(offering.pk, 1235), ("minimum", 3765)], 5000)
    verify_invoice(draft)
    final = close_and_get_invoice(tenant)
    assert (final.total, adjustments_of(tenant)) == (5000, [("minimum", "minimum", 3765 * 36 * 10**9)])
    verify_invoice(final)
    with tenant_scope(tenant.pk):
        explained = explain_invoice_line(invoice_lines(final)[1])
    assert (explained.title, explained.recomputed_equal, explained.leases_total) == ("Minimum spend", True, 0)


def test_the_minimum_line_disappears_once_usage_reaches_the_minimum() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_test_minimum(tenant)
    assert [line.n for line in invoice_lines(create_draft(tenant))] == [1, 2]
    add_ended_lease(project, create_priced_offering(50 * EURO), START, HOUR)
    draft = create_draft(tenant)
    assert ([line.n for line in invoice_lines(draft)], draft.total) == ([1, 2], 5100)
    assert drafts.refresh_drafts(tenant, now=NOW) == 0
    final = close_and_get_invoice(tenant)
    assert (final.total, adjustments_of(tenant)) == (5100, [])
    verify_invoice(final)


def test_line_numbers_have_no_gap_after_the_minimum_line_disappears() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_test_minimum(tenant)
    create_draft(tenant)
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    assert [line.kind for line in invoice_lines(create_draft(tenant))] == ["usage", "minimum", "usage"]
    add_ended_lease(project, create_priced_offering(50 * EURO), START, HOUR)
    draft = create_draft(tenant)
    assert [(line.n, line.kind) for line in invoice_lines(draft)] == [(1, "usage"), (2, "usage"), (3, "usage")]
    verify_invoice(draft)


def test_a_minimum_below_one_cent_bills_nothing_and_prevents_prepayment() -> None:
    tenant, _ = create_customer()
    made = create_test_minimum(tenant, 1, since=utc("2026-11-30 23:59:00"))
    assert close_month.close_due_months(now=CLOSES).months == 1
    assert invoices_of(tenant) == []
    with pytest.raises(HasMinimum):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=CLOSES
        )
    minimums.end_minimum(made, at=CLOSES, actor=OPERATOR, now=CLOSES)
    later = CLOSES + timedelta(seconds=1)
    account_terms.set_account_terms(
        tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=later
    )


def test_csv_exports_include_the_minimum_line() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_test_minimum(tenant)
    final = close_and_get_invoice(tenant)
    final.tenant = tenant
    with tenant_scope(tenant.pk):
        rows = list(csv.DictReader("".join(csv_exports.csv_text(final, "focus")).splitlines()))
        assert sum(Decimal(row["BilledCost"]) for row in rows) * 100 == final.total
        assert [(row["ChargeCategory"], row["ServiceName"]) for row in rows][1:] == [("Adjustment", "Account")]
        assert "Minimum spend" in "".join(csv_exports.csv_text(final, "charges"))


def test_discounts_apply_before_the_minimum_spend() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 60 * HOUR)
    create_discount(tenant, percent_bp=5000)
    create_test_minimum(tenant)
    final = close_and_get_invoice(tenant)
    assert final.total == 5000
    verify_invoice(final)


def test_months_without_usage_are_invoiced_at_the_minimum_spend() -> None:
    tenant, _ = create_customer()
    create_test_minimum(tenant)
    assert close_month.close_due_months(now=CLOSES).months == 1
    final = invoices_of(tenant)[0]
    assert (final.total, final.number, line_amounts(final)) == (5000, 1, [("minimum", 5000)])
    verify_invoice(final)
    assert close_month.close_due_months(now=utc("2027-01-01 00:10:00")).months == 1
    assert [invoice.total for invoice in invoices_of(tenant)] == [5000, 5000]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_partial_month_bills_the_minimum_prorated_to_the_second(zone: str) -> None:
    tenant, _ = create_customer(zone)
    create_test_minimum(tenant, 30_000, since=utc("2026-11-16 00:00:00"), until=utc("2026-11-21 00:00:00"))
    close_month.close_due_months(now=CLOSES)
    final = invoices_of(tenant)[0]
    assert final.total == 30_000 * 5 // 30
    verify_invoice(final)


def test_consecutive_minimums_in_one_month_are_prorated_and_added() -> None:
    tenant, _ = create_customer()
    first = create_test_minimum(tenant, 30_000)
    with pytest.raises(MinimumOverlaps):
        create_test_minimum(tenant, since=utc("2026-11-10 00:00:00"))
    minimums.end_minimum(first, at=utc("2026-11-21 09:00:00"), actor=OPERATOR, now=NOW)
    create_test_minimum(tenant, 60_000, since=utc("2026-11-21 09:00:00"))
    close_month.close_due_months(now=CLOSES)
    seconds = 20 * 86400 + 9 * HOUR
    month = 30 * 86400
    parts = [
        (2 * 30_000 * seconds + month) // (2 * month),
        (2 * 60_000 * (month - seconds) + month) // (2 * month),
    ]
    assert invoices_of(tenant)[0].total == sum(parts)
    verify_invoice(invoices_of(tenant)[0])
    with tenant_scope(tenant.pk):
        assert AuditEvent.objects.filter(action__startswith="minimum.").count() == 3


def test_invalid_minimum_terms_are_refused() -> None:
    tenant, _ = create_customer()
    for minor, since, until in (
        (0, NOW, None),
        (-100, NOW, None),
        (100, NOW - timedelta(days=1), None),
        (100, NOW, NOW),
    ):
        with pytest.raises(InvalidValue):
            minimums.create_minimum(tenant, minor=minor, since=since, until=until, actor=OPERATOR, now=NOW)
    last = utc("9999-12-31 23:59:59") + timedelta(microseconds=1)
    with pytest.raises(InvalidValue, match="The time is out of range"):
        minimums.create_minimum(tenant, minor=100, since=NOW, until=last, actor=OPERATOR, now=NOW)
    made = create_test_minimum(tenant, since=NOW)
    for moment in (NOW - timedelta(days=1), NOW, last):
        with pytest.raises(InvalidValue):
            minimums.end_minimum(made, at=moment, actor=OPERATOR, now=NOW)
    with pytest.raises(InvalidValue, match="must not be in the past"):
        minimums.end_minimum(made, at=NOW + timedelta(hours=1), actor=OPERATOR, now=NOW + timedelta(hours=2))
    with staff_scope():
        assert minimums.find_minimum(made.pk).tenant == tenant
        with pytest.raises(ObjectNotFound):
            minimums.find_minimum("min_none")


def test_a_prepaid_tenant_cannot_have_a_minimum() -> None:
    tenant, _ = create_customer()
    account_terms.set_account_terms(
        tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=NOW
    )
    with pytest.raises(MinimumPrepaid):
        create_test_minimum(tenant, since=NOW)
    lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(tenant.pk):
        assert not Invoice.objects.exists()


def test_a_minimum_in_an_open_month_blocks_the_change_to_prepaid() -> None:
    tenant, _ = create_customer()
    made = create_test_minimum(tenant, 30_000)
    minimums.end_minimum(made, at=NOW, actor=OPERATOR, now=NOW)
    later = NOW + timedelta(hours=1)
    with pytest.raises(HasMinimum, match="minimum spend in 2026-11"):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=later
        )
    assert close_month.close_due_months(now=CLOSES).months == 1
    account_terms.set_account_terms(
        tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=CLOSES
    )
