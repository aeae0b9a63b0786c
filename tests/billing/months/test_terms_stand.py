"""Terms that cannot be meant are refused by PostgreSQL itself, and what was agreed of a closed month stays."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import Campaign, Discount, Invoice, Minimum
from billing.services import bundles, closing, drafts, month_close, periods, rating
from billing.services.explain import explain
from billing.services.month_charges import discounting, reckoning
from billing.services.month_charges.month import Month
from billing.services.month_charges.reckoning import Unreckonable
from broker.models import Offering
from tenants.models import Tenant
from tenants.services import tenants
from tenants.services.tenants import CurrencyStays
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, customer, invoices, lines, ran, sold
from tests.billing.months.terms import CLOSES, NOW, START, amounts, checked, closed, drafted, given

pytestmark = pytest.mark.django_db
NOVEMBER, DECEMBER = at("2026-11-01 00:00:00"), at("2026-12-01 00:00:00")
SPLIT = timedelta(microseconds=500)


def least(
    tenant: Tenant, since: datetime | None = NOVEMBER, until: datetime | None = None, **other: Any
) -> Minimum:
    """Write a minimum as it stands, past every check of ours."""
    with as_tenant(tenant.pk):
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
def test_a_minimum_that_cannot_be_meant_is_refused(
    since: datetime | None, until: datetime | None, other: dict[str, Any]
) -> None:
    tenant, _ = customer()
    with pytest.raises(IntegrityError), transaction.atomic():
        least(tenant, since, until, **other)


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
def test_a_discount_that_cannot_be_meant_is_refused(terms: dict[str, Any]) -> None:
    tenant, _ = customer()
    with pytest.raises(IntegrityError), transaction.atomic():
        given(tenant, **terms)


def test_a_code_of_an_amount_has_a_currency() -> None:
    with pytest.raises(IntegrityError, match="campaign_of_a_currency"):
        Campaign.objects.create(code="AUTUMN", name="Autumn", minor=100, since=NOW, created_at=NOW)


def test_a_tenant_stays_with_the_currency_that_it_agreed_on_something_in() -> None:
    tenant, _ = customer()
    given(tenant, percent_bp=1000)
    with as_tenant(tenant.pk):
        tenants.change(tenant, currency="USD", actor=OPERATOR, now=NOW)
        least(tenant, currency="USD")
        with pytest.raises(CurrencyStays, match="agreed"):
            tenants.change(Tenant.objects.get(), currency="EUR", actor=OPERATOR, now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        lambda tenant: given(tenant, percent_bp=500),
        lambda tenant: given(tenant, minor=100, last_month="2027-02"),
        lambda tenant: least(tenant, at("2026-11-20 00:00:00"), DECEMBER),
        lambda tenant: Discount.objects.filter(percent_bp=1000).update(last_month="2026-10"),
        lambda tenant: Discount.objects.filter(percent_bp=300).update(last_month="2026-10"),
        lambda tenant: Minimum.objects.update(
            valid=DateTimeTZRange(NOVEMBER, NOVEMBER + timedelta(seconds=1))
        ),
        lambda tenant: Minimum.objects.update(valid=DateTimeTZRange(NOVEMBER, None)),
    ],
)
def test_what_was_agreed_of_a_closed_month_stays(change: Callable[[Tenant], object]) -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    given(tenant, percent_bp=300, offerings=[sold(EURO).pk])  # of nothing that was used
    least(tenant, until=at("2026-11-15 00:00:00"))
    final = closed(tenant)
    with as_tenant(tenant.pk):
        before = b"".join(bundles.bundle(final))
        with pytest.raises(IntegrityError), transaction.atomic():
            change(tenant)
        Discount.objects.update(last_month="2026-11")  # what is ahead may end
        assert b"".join(bundles.bundle(final)) == before
        assert [explain(line).recomputed_equal for line in final.lines.order_by("n")] == [True, True]


def test_a_final_bundle_says_for_ever_what_held_when_it_was_made() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    ran(project, offering, START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    given(tenant, percent_bp=500, price_classes=["reserved"])
    final = closed(tenant)
    with as_tenant(tenant.pk):
        before = b"".join(bundles.bundle(final))
        Offering.objects.filter(pk=offering.pk).update(price_class="reserved")
        assert b"".join(bundles.bundle(Invoice.objects.get())) == before
        with pytest.raises(IntegrityError, match="refused"), transaction.atomic():
            Invoice.objects.update(agreed="{}")


def test_a_final_invoice_of_an_older_release_says_what_holds() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    final = closed(tenant)
    with as_tenant(tenant.pk):
        before = b"".join(bundles.bundle(final))
    final.agreed = None
    with as_tenant(tenant.pk):
        final.refresh_from_db = lambda **_: None  # type: ignore[method-assign]
        assert b"".join(bundles.bundle(final)) == before


def test_a_month_that_cannot_be_reckoned_holds_up_its_own_tenant_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlucky, project = customer()
    other, theirs = customer()
    offering = sold(EURO)
    for each in (project, theirs):
        ran(each, offering, START, HOUR)
    for tenant in (unlucky, other):
        given(tenant, percent_bp=1000)

    def odd(month: Month) -> None:
        if month.tenant_id == unlucky.pk:
            raise ValueError("nobody can mean that")
        discounting.percents(month)

    monkeypatch.setattr(reckoning, "RULES", (odd,))
    rated = rating.rate(now=NOW)
    assert drafts.refresh_all(sorted(rated.tenants), now=NOW) == 1
    with pytest.raises(Unreckonable, match="test_terms_stand of 2026-11: nobody can mean that"):
        drafts.refresh(unlucky, now=NOW)
    done = closing.close_due(now=CLOSES)
    assert (done.months, [each.tenant_id for each in done.waiting if each.broken]) == (1, [unlucky.pk])
    assert [invoice.total for invoice in invoices(other)] == [90]
    with as_staff():
        items = {item.name: item for item in month_close.look("2026-11", now=CLOSES).items}
    found = items["Every month is closed"]
    assert (found.state, found.fix) == (
        month_close.State.BAD,
        "Mend what is said here of each; the next run tries again.",
    )
    assert found.examples == (f"{unlucky.name}: test_terms_stand of 2026-11: nobody can mean that",)
    monkeypatch.undo()
    assert closing.close_due(now=CLOSES).months == 1
    assert [(invoice.total, invoice.period.held_up) for invoice in invoices(unlucky)] == [(90, "")]


def test_a_minimum_of_months_before_the_first_use_is_billed() -> None:
    tenant, project = customer()
    least(tenant, NOVEMBER, at("2026-12-11 00:00:00"))
    ran(project, sold(EURO), at("2027-03-05 00:00:00"), HOUR)
    rating.rate(now=at("2027-03-06 00:00:00"))
    assert closing.close_due(now=at("2027-03-07 00:00:00")).months == 4
    made = [(invoice.period.label, invoice.subtotal) for invoice in invoices(tenant)]
    assert made == [("2026-11", 10_000), ("2026-12", 10_000 * 10 * 2 // 31 // 2 + 1), ("2027-03", 100)]


def test_a_minimum_that_ended_long_before_anybody_looked_is_billed() -> None:
    tenant, _ = customer()
    least(tenant, NOVEMBER, DECEMBER)
    closing.close_due(now=at("2027-06-01 00:10:00"))
    assert [(invoice.period.label, invoice.total) for invoice in invoices(tenant)] == [("2026-11", 10_000)]
    checked(invoices(tenant)[0])


def test_a_draft_that_says_nothing_takes_no_number() -> None:
    tenant, project = customer()
    with as_tenant(tenant.pk):
        periods.ensure(tenant, since=NOVEMBER, until=NOW)
        Invoice.objects.create(
            tenant=tenant, period=periods.current(tenant, now=NOW), currency="EUR", refreshed_at=NOW
        )
    assert closing.close_period(tenant, "2026-11", now=CLOSES) is None
    assert invoices(tenant) == []
    ran(project, sold(EURO), at("2026-12-05 00:00:00"), HOUR)
    drafted(tenant)
    rating.rate(now=at("2027-01-01 00:10:00"))
    final = closing.close_period(tenant, "2026-12", now=at("2027-01-01 00:10:00"))
    assert final
    assert (final.number, amounts(final)) == (1, [(lines(final)[0].offering_id, 100)])
