"""What discounts take off a month: of which lines, in which order, and never more than there is."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.models import Discount, InvoiceLine, MonthCharge
from billing.services import closing, conservation, crediting, drafts, rating
from billing.services.bundles import DraftMoves
from billing.services.discounts import giving
from billing.services.discounts.terms import Terms, amount_of, percent_of
from billing.services.explain import explain
from billing.services.exports import sheets
from billing.services.papers.lines import told
from broker.models import Offering, OfferingState
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, customer, invoices, lines, ran, reprice, sold
from tests.billing.months.terms import CLOSES, NOW, START, amounts, carried, checked, closed, drafted, given

pytestmark = pytest.mark.django_db


def test_a_percentage_is_off_the_draft_and_off_the_invoice() -> None:
    tenant, project = customer()
    ran(project, offering := sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    draft = drafted(tenant)
    assert (amounts(draft), draft.total, carried(tenant)) == ([(offering.pk, 900)], 900, [])
    checked(draft)
    final = closed(tenant)
    assert (amounts(final), final.total) == ([(offering.pk, 900)], 900)
    assert carried(tenant) == [("percent", offering.pk, -HOUR * EURO)]
    checked(final)


def test_b28_reckoning_again_and_again_is_reckoning_once() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    given(tenant, minor=150)
    drafted(tenant)
    assert [drafts.refresh(tenant, now=NOW) for _ in range(3)] == [0, 0, 0]
    assert [invoice.total for invoice in invoices(tenant)] == [750]
    final = closed(tenant)
    assert closing.close_period(tenant, "2026-11", now=CLOSES) == final
    assert final.total == 750
    assert len(carried(tenant)) == 2


def test_percentages_come_first_each_of_what_is_left_and_then_amounts() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 100 * HOUR)
    given(tenant, minor=1000, name="Ten")
    given(tenant, percent_bp=1000, given_at=at("2026-11-01 00:00:01"), name="Later")
    given(tenant, percent_bp=5000, name="Half")
    final = closed(tenant)
    assert final.total == 10000 // 2 * 9 // 10 - 1000
    with as_tenant(tenant.pk):
        assert list(MonthCharge.objects.order_by("n").values_list("label", flat=True)) == [
            "Half",
            "Later",
            "Ten",
        ]
    checked(final)


def test_a_discount_is_only_of_what_it_says() -> None:
    tenant, project = customer()
    ran(project, card := sold(EURO), START, 10 * HOUR)
    ran(project, spot := sold(EURO, price_class="spot"), START, 10 * HOUR)
    ran(project, other := sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=5000, offerings=[card.pk])
    given(tenant, minor=100, price_classes=["spot"])
    final = closed(tenant)
    assert dict(amounts(final)) == {card.pk: 500, spot.pk: 900, other.pk: 1000}
    checked(final)


def test_it_never_takes_more_than_there_is() -> None:
    tenant, project = customer()
    offering = sold(1_234_567_891)
    ran(project, offering, START, 3601)
    reprice(offering, 7, since=at("2026-11-03 00:00:00"))
    ran(project, offering, at("2026-11-04 00:00:00"), 3601)
    given(tenant, minor=100_000)
    final = closed(tenant)
    assert (final.total, {minor for _, minor in amounts(final)}) == (0, {0})
    assert all(line.exact_num == 0 for line in lines(final))
    checked(final)


def test_an_amount_is_shared_in_whole_coins_and_all_of_it_is_off() -> None:
    tenant, project = customer()
    for nano in (1_111_111_111, 777_777_777, 333_333_333):
        ran(project, sold(nano), START, 5 * HOUR + 17)
    before = drafted(tenant).total
    given(tenant, minor=333)
    final = closed(tenant)
    assert final.total == before - 333
    checked(final)


def test_a_discount_holds_in_its_months_only() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    ran(project, offering, START, HOUR)
    given(tenant, percent_bp=5000, last_month="2026-11")
    rating.rate(now=CLOSES)
    closing.close_due(now=CLOSES)
    assert [invoice.total for invoice in invoices(tenant) if invoice.number] == [100, 50]
    ran(project, offering, at("2026-12-01 00:00:00"), HOUR)
    rating.rate(now=at("2026-12-02 00:00:00"))
    drafts.refresh(tenant, now=at("2026-12-02 00:00:00"))
    assert invoices(tenant)[-1].total == 100


def test_late_seconds_are_reckoned_with_the_month_that_carries_them() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    ran(project, offering, START, HOUR)
    first = closed(tenant)
    ran(project, offering, START + timedelta(hours=2), HOUR)
    given(tenant, percent_bp=5000, first_month="2026-12")
    rating.rate(now=CLOSES)
    drafts.refresh(tenant, now=CLOSES)
    late = invoices(tenant)[-1]
    assert (first.total, late.total) == (100, 50)
    checked(late)


def test_everything_that_is_told_of_it_comes_to_the_invoice() -> None:
    tenant, project = customer()
    offering = sold(1_234_567_891)
    ran(project, offering, START, 3601)
    ran(project, sold(EURO), START, 7)
    given(tenant, percent_bp=1234)
    given(tenant, minor=3)
    for invoice in (drafted(tenant), closed(tenant)):
        invoice.tenant = tenant
        with as_tenant(tenant.pk):
            focus = [row.split(",") for row in "".join(sheets.text(invoice, "focus")).splitlines()]
            billed = focus[0].index("BilledCost")
            assert sum(Decimal(row[billed]) for row in focus[1:]) * 100 == invoice.total
            charges = "".join(sheets.text(invoice, "charges"))
            assert charges.count("percent") + charges.count("amount") == 3
            assert "".join(sheets.text(invoice, "lines")).count("Partner") == 2
            explained = [
                explain(line)
                for line in InvoiceLine.objects.filter(invoice=invoice).select_related("invoice")
            ]
            assert all(each.recomputed_equal for each in explained)
            assert [len(each.month) for each in explained] == [2, 1]
            assert "less by Partner" in told(invoice)[0].all_terms
    Offering.objects.update(state=OfferingState.DRAFT)  # of no real shape
    with as_staff():
        kept = conservation.over(first=START, last=CLOSES)
    assert (kept.lines_minus_charges, kept.misrounded_lines, kept.wrong_totals) == (0, 0, 0)
    final = invoices(tenant)[-1]
    note = crediting.credit(final, wanted=None, seen=0, why="all of it", actor=OPERATOR, now=CLOSES)
    assert note.total == final.total


def test_a_draft_that_is_behind_its_discounts_says_so() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    draft = drafted(tenant)
    given(tenant, percent_bp=1000)
    with pytest.raises(DraftMoves):
        checked(draft)


def test_an_operator_gives_one_and_ends_it() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    drafted(tenant)
    terms = Terms("Partner", percent_bp=2500)
    made = giving.give(tenant, terms, actor=OPERATOR, now=NOW)
    assert (made.first_month, made.last_month, giving.size(made)) == ("2026-11", None, "25 %")
    assert invoices(tenant)[0].total == 75
    assert giving.give(tenant, terms, actor=OPERATOR, now=NOW) == made
    with as_staff():
        made = giving.find(made.pk)
        with pytest.raises(Missing):
            giving.find("dis_none")
    with pytest.raises(Invalid, match="the present month"):
        giving.end(made, last_month="2026-10", actor=OPERATOR, now=NOW)
    ended = giving.end(made, actor=OPERATOR, now=NOW)
    assert (ended.last_month, giving.end(ended, actor=OPERATOR, now=NOW).last_month) == ("2026-11", "2026-11")
    with as_tenant(tenant.pk):
        assert set(AuditEvent.objects.filter(subject_id=made.pk).values_list("action", flat=True)) == {
            "discount.give",
            "discount.end",
        }


@pytest.mark.parametrize(
    ("terms", "more", "field"),
    [
        (Terms("", percent_bp=1), {}, "name"),
        (Terms("x"), {}, "percent"),
        (Terms("x", percent_bp=1, minor=1, currency="EUR"), {}, "percent"),
        (Terms("x", percent_bp=10_001), {}, "percent"),
        (Terms("x", percent_bp=0), {}, "percent"),
        (Terms("x", minor=0, currency="EUR"), {}, "amount"),
        (Terms("x", minor=-5, currency="EUR"), {}, "amount"),
        (Terms("x", minor=5, currency="XXX"), {}, "currency"),
        (Terms("x", minor=5, currency="USD"), {}, "currency"),
        (Terms("x", percent_bp=1, offerings=("off_none",)), {}, "offerings"),
        (Terms("x", percent_bp=1, price_classes=("gold",)), {}, "price_classes"),
        (Terms("x", percent_bp=1), {"months": 0}, "months"),
        (Terms("x", percent_bp=1), {"first_month": "2026-10"}, "first_month"),
        (Terms("x", percent_bp=1), {"months": 1201}, "months"),
        (Terms("x", percent_bp=1), {"first_month": "2026-13"}, "first_month"),
        (Terms("x", percent_bp=1), {"first_month": "soon"}, "first_month"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(terms: Terms, more: Any, field: str) -> None:
    tenant, _ = customer()
    with pytest.raises(Invalid) as refused:
        giving.give(tenant, terms, actor=OPERATOR, now=NOW, **more)
    assert refused.value.field == field
    with as_tenant(tenant.pk):
        assert not Discount.objects.exists()


def test_a_discount_of_nothing_that_is_sold_so_is_refused() -> None:
    tenant, _ = customer()
    offering = sold(EURO)
    none = Terms("x", percent_bp=1, offerings=(offering.pk,), price_classes=("spot",))
    with pytest.raises(Invalid, match="nothing would be cheaper"):
        giving.give(tenant, none, actor=OPERATOR, now=NOW)
    some = Terms("x", percent_bp=1, offerings=(offering.pk,), price_classes=("spot", "on_demand"))
    assert giving.give(tenant, some, actor=OPERATOR, now=NOW).price_classes == ["on_demand", "spot"]


def test_an_amount_is_asked_for_as_its_currency_is_written() -> None:
    for currency, such in (("JPY", "100"), ("EUR", "100.00"), ("KWD", "100.000")):
        with pytest.raises(Invalid) as refused:
            amount_of("1.2345", currency)
        assert refused.value.fix.text == f"Type an amount such as {such}."


def test_percentages_are_read_exactly() -> None:
    assert [percent_of(text) for text in ("12.5", " 7 %", "0.25", "100")] == [1250, 700, 25, 10000]
    for odd in ("", "-5", "1.234", "1e2", "٣"):
        with pytest.raises(Invalid):
            percent_of(odd)


def test_postgresql_keeps_a_discount_as_it_was_given() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    made = given(tenant, percent_bp=1000)
    closed(tenant)
    with as_tenant(tenant.pk):
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
