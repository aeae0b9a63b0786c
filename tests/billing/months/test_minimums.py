"""What a month lacks of the least that was agreed on is a line of its own."""

import csv
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing.models import Invoice, Minimum
from billing.services import closing, drafts, minimums, rating
from billing.services.explain import explain
from billing.services.exports import sheets
from billing.services.minimums import MinimumOverlaps, MinimumPrepaid
from billing.services.wallets import terms
from billing.services.wallets.terms import HasMinimum
from tenants.models import AuditEvent, Tenant
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, customer, invoices, lines, ran, sold
from tests.billing.months.terms import CLOSES, NOW, START, amounts, carried, checked, closed, drafted, given

pytestmark = pytest.mark.django_db
NOVEMBER = at("2026-11-01 00:00:00")


def agreed(
    tenant: Tenant, minor: int = 5000, *, since: datetime = NOVEMBER, until: datetime | None = None
) -> Minimum:
    return minimums.agree(tenant, minor=minor, since=since, until=until, actor=OPERATOR, now=min(since, NOW))


def test_what_lines_lack_of_the_minimum_is_a_line() -> None:
    tenant, project = customer()
    ran(project, offering := sold(1_234_567_891), START, 10 * HOUR)
    agreed(tenant)
    draft = drafted(tenant)
    assert (amounts(draft), draft.total) == ([(offering.pk, 1235), ("minimum", 3765)], 5000)
    checked(draft)
    final = closed(tenant)
    assert (final.total, carried(tenant)) == (5000, [("minimum", "minimum", 3765 * 36 * 10**9)])
    checked(final)
    with as_tenant(tenant.pk):
        told = explain(lines(final)[1])
    assert (told.what, told.recomputed_equal, told.leases_total) == ("Minimum spend", True, 0)


def test_the_line_goes_when_enough_was_used_and_numbers_have_no_gap() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    agreed(tenant)
    assert [line.n for line in lines(drafted(tenant))] == [1, 2]
    ran(project, sold(50 * EURO), START, HOUR)
    draft = drafted(tenant)
    assert ([line.n for line in lines(draft)], draft.total) == ([1, 2], 5100)
    assert drafts.refresh(tenant, now=NOW) == 0
    final = closed(tenant)
    assert (final.total, carried(tenant)) == (5100, [])
    checked(final)


def test_numbers_have_no_gap_when_use_comes_after_the_line_and_the_line_goes() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    agreed(tenant)
    drafted(tenant)
    ran(project, sold(EURO), START, HOUR)
    assert [line.kind for line in lines(drafted(tenant))] == ["usage", "minimum", "usage"]
    ran(project, sold(50 * EURO), START, HOUR)
    draft = drafted(tenant)
    assert [(line.n, line.kind) for line in lines(draft)] == [(1, "usage"), (2, "usage"), (3, "usage")]
    checked(draft)


def test_a_part_of_nothing_makes_no_invoice_and_whoever_has_a_minimum_pays_by_invoice() -> None:
    tenant, _ = customer()
    made = agreed(tenant, 1, since=at("2026-11-30 23:59:00"))
    assert closing.close_due(now=CLOSES).months == 1
    assert invoices(tenant) == []
    with pytest.raises(HasMinimum):
        terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=CLOSES)
    minimums.end(made, at=CLOSES, actor=OPERATOR, now=CLOSES)
    later = CLOSES + timedelta(seconds=1)
    terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=later)


def test_files_carry_the_line_too() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    agreed(tenant)
    final = closed(tenant)
    final.tenant = tenant
    with as_tenant(tenant.pk):
        rows = list(csv.DictReader("".join(sheets.text(final, "focus")).splitlines()))
        assert sum(Decimal(row["BilledCost"]) for row in rows) * 100 == final.total
        assert [(row["ChargeCategory"], row["ServiceName"]) for row in rows][1:] == [
            ("Purchase", "gpubroker")
        ]
        assert "Minimum spend" in "".join(sheets.text(final, "charges"))


def test_discounts_count_before_the_minimum() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 60 * HOUR)
    given(tenant, percent_bp=5000)
    agreed(tenant)
    final = closed(tenant)
    assert final.total == 5000
    checked(final)


def test_a_month_without_any_use_is_invoiced_too() -> None:
    tenant, _ = customer()
    agreed(tenant)
    assert closing.close_due(now=CLOSES).months == 1
    final = invoices(tenant)[0]
    assert (final.total, final.number, amounts(final)) == (5000, 1, [("minimum", 5000)])
    checked(final)
    assert closing.close_due(now=at("2027-01-01 00:10:00")).months == 1
    assert [invoice.total for invoice in invoices(tenant)] == [5000, 5000]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_months_it_begins_and_ends_in_count_by_the_second(zone: str) -> None:
    tenant, _ = customer(zone)
    agreed(tenant, 30_000, since=at("2026-11-16 00:00:00"), until=at("2026-11-21 00:00:00"))
    closing.close_due(now=CLOSES)
    final = invoices(tenant)[0]
    assert final.total == 30_000 * 5 // 30
    checked(final)


def test_one_follows_another_and_both_count() -> None:
    tenant, _ = customer()
    first = agreed(tenant, 30_000)
    with pytest.raises(MinimumOverlaps):
        agreed(tenant, since=at("2026-11-10 00:00:00"))
    minimums.end(first, at=at("2026-11-21 09:00:00"), actor=OPERATOR, now=NOW)
    agreed(tenant, 60_000, since=at("2026-11-21 09:00:00"))
    closing.close_due(now=CLOSES)
    seconds = 20 * 86400 + 9 * HOUR
    month = 30 * 86400
    parts = [
        (2 * 30_000 * seconds + month) // (2 * month),
        (2 * 60_000 * (month - seconds) + month) // (2 * month),
    ]
    assert invoices(tenant)[0].total == sum(parts)
    checked(invoices(tenant)[0])
    with as_tenant(tenant.pk):
        assert AuditEvent.objects.filter(action__startswith="minimum.").count() == 3


def test_what_cannot_be_meant_is_refused() -> None:
    tenant, _ = customer()
    for minor, since, until in (
        (0, NOW, None),
        (-100, NOW, None),
        (100, NOW - timedelta(days=1), None),
        (100, NOW, NOW),
    ):
        with pytest.raises(Invalid):
            minimums.agree(tenant, minor=minor, since=since, until=until, actor=OPERATOR, now=NOW)
    last = at("9999-12-31 23:59:59") + timedelta(microseconds=1)
    with pytest.raises(Invalid, match="beyond what calendars can tell"):
        minimums.agree(tenant, minor=100, since=NOW, until=last, actor=OPERATOR, now=NOW)
    made = agreed(tenant, since=NOW)
    for moment in (NOW - timedelta(days=1), NOW, last):
        with pytest.raises(Invalid):
            minimums.end(made, at=moment, actor=OPERATOR, now=NOW)
    with pytest.raises(Invalid, match="no sooner than now"):
        minimums.end(made, at=NOW + timedelta(hours=1), actor=OPERATOR, now=NOW + timedelta(hours=2))
    with as_staff():
        assert minimums.find(made.pk).tenant == tenant
        with pytest.raises(Missing):
            minimums.find("min_none")


def test_whoever_pays_beforehand_has_none() -> None:
    tenant, _ = customer()
    terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=NOW)
    with pytest.raises(MinimumPrepaid):
        agreed(tenant, since=NOW)
    rating.rate(now=NOW)
    with as_tenant(tenant.pk):
        assert not Invoice.objects.exists()


def test_a_minimum_of_a_month_that_is_not_closed_yet_keeps_its_tenant_with_paying_by_invoice() -> None:
    tenant, _ = customer()
    made = agreed(tenant, 30_000)
    minimums.end(made, at=NOW, actor=OPERATOR, now=NOW)
    later = NOW + timedelta(hours=1)
    with pytest.raises(HasMinimum, match="at least so much in 2026-11"):
        terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=later)
    assert closing.close_due(now=CLOSES).months == 1
    terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=CLOSES)
