"""Scope, order, rounding and validity of discounts."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.models import Discount, InvoiceAdjustment, InvoiceLine
from billing.services.agreements.discounts import tenant_discounts
from billing.services.agreements.discounts.discount_terms import (
    DiscountTerms,
    parse_discount_amount,
    parse_percent_bp,
)
from billing.services.documents import csv_exports
from billing.services.documents.invoice_bundles import DraftChanging
from billing.services.documents.line_names import name_lines
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from billing.services.reports.line_explanations import explain_invoice_line
from broker.models import Offering, OfferingState
from tenants.models import AuditEvent
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
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db


def test_a_percentage_discount_reduces_draft_and_final_invoice() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, offering := create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    draft = create_draft(tenant)
    assert (line_amounts(draft), draft.total, adjustments_of(tenant)) == ([(offering.pk, 900)], 900, [])
    verify_invoice(draft)
    final = close_and_get_invoice(tenant)
    assert (line_amounts(final), final.total) == ([(offering.pk, 900)], 900)
    assert adjustments_of(tenant) == [("percent", offering.pk, -HOUR * EURO)]
    verify_invoice(final)


def test_b28_refreshing_a_draft_repeatedly_applies_discounts_once() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    create_discount(tenant, minor=150)
    create_draft(tenant)
    assert [drafts.refresh_drafts(tenant, now=NOW) for _ in range(3)] == [0, 0, 0]
    assert [invoice.total for invoice in invoices_of(tenant)] == [750]
    final = close_and_get_invoice(tenant)
    assert close_month.close_period(tenant, "2026-11", now=CLOSES) == final
    assert final.total == 750
    assert len(adjustments_of(tenant)) == 2


def test_percentage_discounts_compound_and_precede_fixed_amounts() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 100 * HOUR)
    create_discount(tenant, minor=1000, name="Ten")
    create_discount(tenant, percent_bp=1000, given_at=utc("2026-11-01 00:00:01"), name="Later")
    create_discount(tenant, percent_bp=5000, name="Half")
    final = close_and_get_invoice(tenant)
    assert final.total == 10000 // 2 * 9 // 10 - 1000
    with tenant_scope(tenant.pk):
        assert list(InvoiceAdjustment.objects.order_by("n").values_list("label", flat=True)) == [
            "Half",
            "Later",
            "Ten",
        ]
    verify_invoice(final)


def test_a_discount_applies_only_to_its_offerings_or_price_classes() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, whole_gpu := create_priced_offering(EURO), START, 10 * HOUR)
    add_ended_lease(project, spot := create_priced_offering(EURO, price_class="spot"), START, 10 * HOUR)
    add_ended_lease(project, other := create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=5000, offerings=[whole_gpu.pk])
    create_discount(tenant, minor=100, price_classes=["spot"])
    final = close_and_get_invoice(tenant)
    assert dict(line_amounts(final)) == {whole_gpu.pk: 500, spot.pk: 900, other.pk: 1000}
    verify_invoice(final)


def test_a_discount_larger_than_usage_reduces_lines_to_exactly_zero() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(1_234_567_891)
    add_ended_lease(project, offering, START, 3601)
    set_price(offering, 7, since=utc("2026-11-03 00:00:00"))
    add_ended_lease(project, offering, utc("2026-11-04 00:00:00"), 3601)
    create_discount(tenant, minor=100_000)
    final = close_and_get_invoice(tenant)
    assert (final.total, {minor for _, minor in line_amounts(final)}) == (0, {0})
    assert all(line.exact_num == 0 for line in invoice_lines(final))
    verify_invoice(final)


def test_a_fixed_discount_is_split_over_lines_in_whole_cents() -> None:
    tenant, project = create_customer()
    for nano in (1_111_111_111, 777_777_777, 333_333_333):
        add_ended_lease(project, create_priced_offering(nano), START, 5 * HOUR + 17)
    before = create_draft(tenant).total
    create_discount(tenant, minor=333)
    final = close_and_get_invoice(tenant)
    assert final.total == before - 333
    verify_invoice(final)


def test_a_discount_ends_after_its_last_month() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    add_ended_lease(project, offering, START, HOUR)
    create_discount(tenant, percent_bp=5000, last_month="2026-11")
    lease_rating.rate_all_leases(now=CLOSES)
    close_month.close_due_months(now=CLOSES)
    assert [invoice.total for invoice in invoices_of(tenant) if invoice.number] == [100, 50]
    add_ended_lease(project, offering, utc("2026-12-01 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-12-02 00:00:00"))
    drafts.refresh_drafts(tenant, now=utc("2026-12-02 00:00:00"))
    assert invoices_of(tenant)[-1].total == 100


def test_late_usage_gets_the_discounts_of_the_month_that_bills_it() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, START, HOUR)
    first = close_and_get_invoice(tenant)
    add_ended_lease(project, offering, START + timedelta(hours=2), HOUR)
    create_discount(tenant, percent_bp=5000, first_month="2026-12")
    lease_rating.rate_all_leases(now=CLOSES)
    drafts.refresh_drafts(tenant, now=CLOSES)
    late = invoices_of(tenant)[-1]
    assert (first.total, late.total) == (100, 50)
    verify_invoice(late)


def test_exports_explanations_and_checks_agree_with_a_discounted_invoice() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(1_234_567_891)
    add_ended_lease(project, offering, START, 3601)
    add_ended_lease(project, create_priced_offering(EURO), START, 7)
    create_discount(tenant, percent_bp=1234)
    create_discount(tenant, minor=3)
    for invoice in (create_draft(tenant), close_and_get_invoice(tenant)):
        invoice.tenant = tenant
        with tenant_scope(tenant.pk):
            focus = [row.split(",") for row in "".join(csv_exports.csv_text(invoice, "focus")).splitlines()]
            billed = focus[0].index("BilledCost")
            assert sum(Decimal(row[billed]) for row in focus[1:]) * 100 == invoice.total
            charges = "".join(csv_exports.csv_text(invoice, "charges"))
            assert charges.count("percent") + charges.count("amount") == 3
            assert "".join(csv_exports.csv_text(invoice, "lines")).count("Partner") == 2
            explained = [
                explain_invoice_line(line)
                for line in InvoiceLine.objects.filter(invoice=invoice).select_related("invoice")
            ]
            assert all(each.recomputed_equal for each in explained)
            assert [len(each.month) for each in explained] == [2, 1]
            assert ": Partner" in name_lines(invoice)[0].all_terms
    Offering.objects.update(state=OfferingState.DRAFT)  # of no real shape
    with staff_scope():
        kept = conservation.check_conservation(first=START, last=CLOSES)
    assert (kept.lines_minus_charges, kept.misrounded_lines, kept.wrong_totals) == (0, 0, 0)
    final = invoices_of(tenant)[-1]
    note = credit_notes.issue_credit_note(final, wanted=None, seen=0, why="all of it", actor=OPERATOR, now=CLOSES)
    assert note.total == final.total


def test_verification_of_a_draft_older_than_its_discounts_is_refused() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    draft = create_draft(tenant)
    create_discount(tenant, percent_bp=1000)
    with pytest.raises(DraftChanging):
        verify_invoice(draft)


def test_granting_and_ending_a_discount_is_idempotent_and_audited() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_draft(tenant)
    terms = DiscountTerms("Partner", percent_bp=2500)
    made = tenant_discounts.give_discount(tenant, terms, actor=OPERATOR, now=NOW)
    assert (made.first_month, made.last_month, tenant_discounts.format_discount(made)) == (
        "2026-11",
        None,
        "25 %",
    )
    assert invoices_of(tenant)[0].total == 75
    assert tenant_discounts.give_discount(tenant, terms, actor=OPERATOR, now=NOW) == made
    with staff_scope():
        made = tenant_discounts.get_discount(made.pk)
        with pytest.raises(ObjectNotFound):
            tenant_discounts.get_discount("dis_none")
    with pytest.raises(InvalidValue, match=r"must be 20.* or later"):
        tenant_discounts.end_discount(made, last_month="2026-10", actor=OPERATOR, now=NOW)
    ended = tenant_discounts.end_discount(made, actor=OPERATOR, now=NOW)
    assert (ended.last_month, tenant_discounts.end_discount(ended, actor=OPERATOR, now=NOW).last_month) == (
        "2026-11",
        "2026-11",
    )
    with tenant_scope(tenant.pk):
        assert set(AuditEvent.objects.filter(subject_id=made.pk).values_list("action", flat=True)) == {
            "discount.assign",
            "discount.end",
        }


@pytest.mark.parametrize(
    ("terms", "more", "field"),
    [
        (DiscountTerms("", percent_bp=1), {}, "name"),
        (DiscountTerms("x"), {}, "percent"),
        (DiscountTerms("x", percent_bp=1, minor=1, currency="EUR"), {}, "percent"),
        (DiscountTerms("x", percent_bp=10_001), {}, "percent"),
        (DiscountTerms("x", percent_bp=0), {}, "percent"),
        (DiscountTerms("x", minor=0, currency="EUR"), {}, "amount"),
        (DiscountTerms("x", minor=-5, currency="EUR"), {}, "amount"),
        (DiscountTerms("x", minor=5, currency="XXX"), {}, "currency"),
        (DiscountTerms("x", minor=5, currency="USD"), {}, "currency"),
        (DiscountTerms("x", percent_bp=1, offerings=("off_none",)), {}, "offerings"),
        (DiscountTerms("x", percent_bp=1, price_classes=("gold",)), {}, "price_classes"),
        (DiscountTerms("x", percent_bp=1), {"months": 0}, "months"),
        (DiscountTerms("x", percent_bp=1), {"first_month": "2026-10"}, "first_month"),
        (DiscountTerms("x", percent_bp=1), {"months": 1201}, "months"),
        (DiscountTerms("x", percent_bp=1), {"first_month": "2026-13"}, "first_month"),
        (DiscountTerms("x", percent_bp=1), {"first_month": "soon"}, "first_month"),
    ],
)
def test_invalid_discount_terms_are_refused_and_not_stored(terms: DiscountTerms, more: Any, field: str) -> None:
    tenant, _ = create_customer()
    with pytest.raises(InvalidValue) as refused:
        tenant_discounts.give_discount(tenant, terms, actor=OPERATOR, now=NOW, **more)
    assert refused.value.field == field
    with tenant_scope(tenant.pk):
        assert not Discount.objects.exists()


def test_a_discount_without_effect_is_refused() -> None:
    tenant, _ = create_customer()
    offering = create_priced_offering(EURO)
    none = DiscountTerms("x", percent_bp=1, offerings=(offering.pk,), price_classes=("spot",))
    with pytest.raises(InvalidValue, match="would have no effect"):
        tenant_discounts.give_discount(tenant, none, actor=OPERATOR, now=NOW)
    some = DiscountTerms("x", percent_bp=1, offerings=(offering.pk,), price_classes=("spot", "on_demand"))
    assert tenant_discounts.give_discount(tenant, some, actor=OPERATOR, now=NOW).price_classes == [
        "on_demand",
        "spot",
    ]


def test_an_invalid_amount_error_shows_an_example_in_its_currency() -> None:
    for currency, such in (("JPY", "100"), ("EUR", "100.00"), ("KWD", "100.000")):
        with pytest.raises(InvalidValue) as refused:
            parse_discount_amount("1.2345", currency)
        assert refused.value.fix.text == f"Enter an amount such as {such}."


def test_percentages_are_parsed_exactly() -> None:
    assert [parse_percent_bp(text) for text in ("12.5", " 7 %", "0.25", "100")] == [1250, 700, 25, 10000]
    for odd in ("", "-5", "1.234", "1e2", "٣"):
        with pytest.raises(InvalidValue):
            parse_percent_bp(odd)


def test_postgresql_refuses_changes_to_a_discount_except_an_earlier_end() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    made = create_discount(tenant, percent_bp=1000)
    close_and_get_invoice(tenant)
    with tenant_scope(tenant.pk):
        rows = Discount.objects.filter(pk=made.pk)
        for change in ({"percent_bp": 2000}, {"first_month": "2026-10"}, {"last_month": "2026-10"}):
            with pytest.raises(DatabaseError), transaction.atomic():
                rows.update(**change)
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.delete()
        rows.update(last_month="2026-11")
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(last_month=None)
        for odd in ({"percent_bp": 10_001}, {"percent_bp": 0}, {"minor": -1, "currency": "EUR"}):
            with pytest.raises(IntegrityError), transaction.atomic():
                Discount.objects.create(
                    tenant=tenant, name="x", first_month="2026-11", given_by="x", given_at=NOW, **odd
                )
