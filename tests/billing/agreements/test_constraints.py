"""PostgreSQL constraints on agreements, and agreements of closed months."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import Campaign, Discount, Invoice, Minimum
from billing.services.adjustments import discount_adjustments, month_adjustments
from billing.services.adjustments.month_adjustments import AdjustmentFailed
from billing.services.adjustments.month_amounts import MonthAmounts
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_checklist, close_month
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from billing.services.reports.line_explanations import explain_invoice_line
from broker.models import Offering
from tenants.models import Tenant
from tenants.services import tenants
from tenants.services.rls import staff_scope, tenant_scope
from tenants.services.tenants import CurrencyFixed
from tests.billing.agreements.agreed_terms import (
    CLOSES,
    NOW,
    START,
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
NOVEMBER, DECEMBER = utc("2026-11-01 00:00:00"), utc("2026-12-01 00:00:00")
SPLIT = timedelta(microseconds=500)


def insert_minimum(
    tenant: Tenant, since: datetime | None = NOVEMBER, until: datetime | None = None, **other: Any
) -> Minimum:
    """Insert a minimum directly, without the service's checks."""
    with tenant_scope(tenant.pk):
        return Minimum.objects.create(
            **{
                "tenant": tenant,
                "minor": 10_000,
                "currency": "EUR",
                "valid": DateTimeTZRange(since, until),
                "agreed_by": "operator@example.org",
                "agreed_at": NOVEMBER,
            }
            | other
        )


@pytest.mark.parametrize(
    ("since", "until", "other"),
    [
        (None, None, {}),
        (NOVEMBER + SPLIT, None, {}),
        (NOVEMBER, DECEMBER + SPLIT, {}),
        (NOVEMBER, NOVEMBER, {}),
        (NOVEMBER, None, {"valid": DateTimeTZRange(NOVEMBER, DECEMBER, "[]")}),
        (NOVEMBER, None, {"minor": 10**15 + 1}),
        (NOVEMBER, None, {"minor": 0}),
        (NOVEMBER, None, {"currency": "JPY"}),
    ],
)
def test_postgresql_refuses_an_invalid_minimum_spend(
    since: datetime | None, until: datetime | None, other: dict[str, Any]
) -> None:
    tenant, _ = create_customer()
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_minimum(tenant, since, until, **other)


@pytest.mark.parametrize(
    "terms",
    [
        {"percent_bp": 0},
        {"percent_bp": 10_001},
        {"percent_bp": 1000, "currency": "EUR"},
        {"percent_bp": 1000, "first_month": "2026-13"},
        {"percent_bp": 1000, "first_month": "soon"},
        {"percent_bp": 1000, "last_month": "2026-1"},
        {"minor": 100, "currency": ""},
        {"minor": 100, "currency": "JPY"},
        {"minor": 10**15 + 1},
    ],
)
def test_postgresql_refuses_an_invalid_discount(terms: dict[str, Any]) -> None:
    tenant, _ = create_customer()
    with pytest.raises(IntegrityError), transaction.atomic():
        create_discount(tenant, **terms)


def test_a_fixed_amount_campaign_requires_a_currency() -> None:
    with pytest.raises(IntegrityError, match="campaign_of_a_currency"):
        Campaign.objects.create(code="AUTUMN", name="Autumn", minor=100, since=NOW, created_at=NOW)


def test_a_tenant_currency_is_fixed_once_a_minimum_is_agreed() -> None:
    tenant, _ = create_customer()
    create_discount(tenant, percent_bp=1000)
    with tenant_scope(tenant.pk):
        tenants.change(tenant, currency="USD", actor=OPERATOR, now=NOW)
        insert_minimum(tenant, currency="USD")
        with pytest.raises(CurrencyFixed, match="charges or agreements"):
            tenants.change(Tenant.objects.get(), currency="EUR", actor=OPERATOR, now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        lambda tenant: create_discount(tenant, percent_bp=500),
        lambda tenant: create_discount(tenant, minor=100, last_month="2027-02"),
        lambda tenant: insert_minimum(tenant, utc("2026-11-20 00:00:00"), DECEMBER),
        lambda tenant: Discount.objects.filter(percent_bp=1000).update(last_month="2026-10"),
        lambda tenant: Discount.objects.filter(percent_bp=300).update(last_month="2026-10"),
        lambda tenant: Minimum.objects.update(valid=DateTimeTZRange(NOVEMBER, NOVEMBER + timedelta(seconds=1))),
        lambda tenant: Minimum.objects.update(valid=DateTimeTZRange(NOVEMBER, None)),
    ],
)
def test_terms_of_a_closed_month_cannot_be_changed(change: Callable[[Tenant], object]) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    create_discount(tenant, percent_bp=300, offerings=[create_priced_offering(EURO).pk])  # of nothing that was used
    insert_minimum(tenant, until=utc("2026-11-15 00:00:00"))
    final = close_and_get_invoice(tenant)
    with tenant_scope(tenant.pk):
        before = b"".join(invoice_bundles.build_bundle(final))
        with pytest.raises(IntegrityError), transaction.atomic():
            change(tenant)
        Discount.objects.update(last_month="2026-11")  # what is ahead may end
        assert b"".join(invoice_bundles.build_bundle(final)) == before
        assert [explain_invoice_line(line).recomputed_equal for line in final.lines.order_by("n")] == [
            True,
            True,
        ]


def test_a_final_bundle_keeps_the_terms_of_its_finalization() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    create_discount(tenant, percent_bp=500, price_classes=["reserved"])
    final = close_and_get_invoice(tenant)
    with tenant_scope(tenant.pk):
        before = b"".join(invoice_bundles.build_bundle(final))
        Offering.objects.filter(pk=offering.pk).update(price_class="reserved")
        assert b"".join(invoice_bundles.build_bundle(Invoice.objects.get())) == before
        with pytest.raises(IntegrityError, match="refused"), transaction.atomic():
            Invoice.objects.update(agreed="{}")


def test_a_final_invoice_without_stored_terms_uses_the_current_ones() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    final = close_and_get_invoice(tenant)
    with tenant_scope(tenant.pk):
        before = b"".join(invoice_bundles.build_bundle(final))
    final.agreed = None
    with tenant_scope(tenant.pk):
        final.refresh_from_db = lambda **_: None  # type: ignore[method-assign]
        assert b"".join(invoice_bundles.build_bundle(final)) == before


def test_a_failed_adjustment_blocks_only_the_month_of_its_own_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlucky, project = create_customer()
    other, theirs = create_customer()
    offering = create_priced_offering(EURO)
    for each in (project, theirs):
        add_ended_lease(each, offering, START, HOUR)
    for tenant in (unlucky, other):
        create_discount(tenant, percent_bp=1000)

    def odd(month: MonthAmounts) -> None:
        if month.tenant_id == unlucky.pk:
            raise ValueError("nobody can mean that")
        discount_adjustments.apply_percent_discounts(month)

    monkeypatch.setattr(month_adjustments, "RULES", (odd,))
    rated = lease_rating.rate_all_leases(now=NOW)
    assert drafts.refresh_all_drafts(sorted(rated.tenants), now=NOW) == 1
    with pytest.raises(AdjustmentFailed, match="test_constraints of 2026-11: nobody can mean that"):
        drafts.refresh_drafts(unlucky, now=NOW)
    done = close_month.close_due_months(now=CLOSES)
    assert (done.months, [each.tenant_id for each in done.waiting if each.broken]) == (1, [unlucky.pk])
    assert [invoice.total for invoice in invoices_of(other)] == [90]
    with staff_scope():
        items = {item.name: item for item in close_checklist.build_checklist("2026-11", now=CLOSES).checks}
    found = items["Every month is closed"]
    assert (found.state, found.fix) == (
        close_checklist.CheckState.ACTION_REQUIRED,
        "Fix the listed causes. The next run retries.",
    )
    assert found.examples == (f"{unlucky.name}: test_constraints of 2026-11: nobody can mean that",)
    monkeypatch.undo()
    assert close_month.close_due_months(now=CLOSES).months == 1
    assert [(invoice.total, invoice.period.blocked_reason) for invoice in invoices_of(unlucky)] == [(90, "")]


def test_minimum_spend_is_billed_for_months_before_the_first_usage() -> None:
    tenant, project = create_customer()
    insert_minimum(tenant, NOVEMBER, utc("2026-12-11 00:00:00"))
    add_ended_lease(project, create_priced_offering(EURO), utc("2027-03-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2027-03-06 00:00:00"))
    assert close_month.close_due_months(now=utc("2027-03-07 00:00:00")).months == 4
    made = [(invoice.period.label, invoice.subtotal) for invoice in invoices_of(tenant)]
    assert made == [("2026-11", 10_000), ("2026-12", 10_000 * 10 * 2 // 31 // 2 + 1), ("2027-03", 100)]


def test_a_minimum_spend_that_ended_months_ago_is_billed() -> None:
    tenant, _ = create_customer()
    insert_minimum(tenant, NOVEMBER, DECEMBER)
    close_month.close_due_months(now=utc("2027-06-01 00:10:00"))
    assert [(invoice.period.label, invoice.total) for invoice in invoices_of(tenant)] == [("2026-11", 10_000)]
    verify_invoice(invoices_of(tenant)[0])


def test_a_draft_without_lines_takes_no_invoice_number() -> None:
    tenant, project = create_customer()
    with tenant_scope(tenant.pk):
        billing_periods.ensure_periods(tenant, since=NOVEMBER, until=NOW)
        Invoice.objects.create(
            tenant=tenant,
            period=billing_periods.current_period(tenant, now=NOW),
            currency="EUR",
            refreshed_at=NOW,
        )
    assert close_month.close_period(tenant, "2026-11", now=CLOSES) is None
    assert invoices_of(tenant) == []
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-12-05 00:00:00"), HOUR)
    create_draft(tenant)
    lease_rating.rate_all_leases(now=utc("2027-01-01 00:10:00"))
    final = close_month.close_period(tenant, "2026-12", now=utc("2027-01-01 00:10:00"))
    assert final
    assert (final.number, line_amounts(final)) == (1, [(invoice_lines(final)[0].offering_id, 100)])
