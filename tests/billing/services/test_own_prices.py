"""A tenant's own price comes before the list's, second by second, and changes nothing that was charged."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import InvoiceLine, PriceVersion, RateCard
from billing.services import (
    bundles,
    drafts,
    earnings,
    explain,
    gaps,
    own_prices,
    prices,
    rating,
    repricing,
    spend,
)
from billing.services.own_prices import PriceOverlaps
from billing.services.prices import PriceFixed
from billing.verify import verify
from broker.models import Offering
from tenants.models import AuditEvent, Project, Tenant
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    at,
    charges,
    customer,
    invoices,
    lines,
    promise,
    ran,
    reprice,
    runs,
    sold,
)

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")
START = at("2026-11-20 00:00:00")
LATER = NOW + timedelta(days=1)


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return customer("Europe/Berlin")


def agree(tenant: Tenant, offering: Offering, nano: int, since: datetime, **more: Any) -> PriceVersion:
    asked = {"now": min(since, NOW), "actor": OPERATOR, **more}
    return own_prices.agree(tenant=tenant, offering=offering, nano_per_hour=nano, since=since, **asked)


def own(tenant: Tenant) -> list[tuple[object, object, int]]:
    with as_tenant(tenant.pk):
        rows = PriceVersion.objects.filter(tenant_id=tenant.pk).order_by("valid")
        return [(row.valid.lower, row.valid.upper, row.nano_per_hour) for row in rows]


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def test_a_lease_pays_its_tenants_price_where_there_is_one_and_the_lists_before_and_after(
    kestrel: tuple[Tenant, Project],
) -> None:
    """The list's one version holds in two parts, each a charge of its own, and on one line."""
    tenant, project = kestrel
    offering = sold(4 * EURO)
    agree(tenant, offering, EURO, START + minutes(15), until=START + minutes(45))
    lease = ran(project, offering, START, HOUR, quantity=2)
    rating.rate(now=NOW)
    assert [(c.lease_id, c.part, c.s, c.unit_seconds, int(c.exact_num)) for c in charges(tenant)] == [
        (lease.pk, 0, START, 1800, 1800 * 4 * EURO),
        (lease.pk, 0, START + minutes(15), 3600, 3600 * EURO),
        (lease.pk, 1, START + minutes(45), 1800, 1800 * 4 * EURO),
    ]
    drafts.refresh(tenant, now=NOW)
    (invoice,) = invoices(tenant)
    assert [(line.unit_seconds, line.minor) for line in lines(invoice)] == [(3600, 400), (3600, 100)]
    assert rating.rate(now=NOW, whole=True).written == 0
    with as_tenant(tenant.pk):
        report = verify.check(b"".join(bundles.bundle(invoice)))
        assert (report.differences, report.total) == ([], 500)
        for line in InvoiceLine.objects.select_related("invoice"):
            assert explain.explain(line).recomputed_equal


def test_others_pay_the_list(kestrel: tuple[Tenant, Project]) -> None:
    tenant, other = kestrel[0], customer()
    offering = sold(4 * EURO)
    agree(tenant, offering, EURO, START)
    ran(other[1], offering, START, HOUR)
    rating.rate(now=NOW)
    assert [int(c.exact_num) for c in charges(other[0])] == [HOUR * 4 * EURO]
    with as_tenant(other[0].pk):
        assert prices.at(NOW, currency="EUR", tenant=other[0].pk)[offering.pk].nano_per_hour == 4 * EURO
        assert PriceVersion.objects.filter(tenant_id__isnull=False).count() == 0, "others do not even see it"


def test_a_quote_keeps_what_it_promised_beside_an_own_price(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(4 * EURO)
    lease = ran(project, offering, START, HOUR)
    promise(lease, offering.price_versions.get())
    agree(tenant, offering, EURO, START)
    rating.rate(now=NOW)
    assert [int(c.exact_num) for c in charges(tenant)] == [HOUR * 4 * EURO]


def test_an_own_price_is_enough_where_the_list_has_none(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(None)
    agree(tenant, offering, EURO, START + minutes(30))
    ran(project, offering, START + minutes(30), HOUR // 2)
    held_up, other = ran(project, offering, START, HOUR), customer()
    ran(other[1], offering, START, HOUR)
    found = rating.rate(now=NOW)
    assert sorted((gap.tenant, gap.lease == held_up.pk, gap.unit_seconds) for gap in found.gaps) == sorted(
        [(tenant.pk, True, HOUR // 2), (other[0].pk, False, HOUR)]
    )
    with as_staff():
        missing = {(each.lease == held_up.pk, each.unit_seconds) for each in gaps.unpriced(now=NOW)}
    assert missing == {(True, HOUR // 2), (False, HOUR)}


def test_what_runs_shows_its_own_price_before_it_is_charged(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(4 * EURO)
    agree(tenant, offering, EURO, NOW - minutes(30))
    lease = runs(project, offering, NOW - minutes(60))
    with as_tenant(tenant.pk):
        assert spend.burning(None, tenant, now=NOW) == EURO
        assert spend.costs([lease.pk], now=NOW)[lease.pk].minor == 250
        assert prices.course(offering.pk, currency="EUR", tenant=tenant.pk)[1:] == [(NOW - minutes(30), EURO)]
    with as_staff():
        assert earnings.now_per_hour(now=NOW) == {"EUR": EURO}
        assert earnings.over((NOW - minutes(60), NOW)) == [{"EUR": 1800 * 5 * EURO}]


def test_the_next_price_closes_the_one_that_runs_and_both_are_in_the_trail(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, _ = kestrel
    offering = sold(4 * EURO)
    agree(tenant, offering, EURO, START)
    agree(tenant, offering, 2 * EURO, LATER)
    assert own(tenant) == [(START, LATER, EURO), (LATER, None, 2 * EURO)]
    with as_tenant(tenant.pk):
        trail = AuditEvent.objects.filter(action="price.agree").order_by("at")
        assert [(e.detail["before"], e.detail["after"]) for e in trail] == [(None, EURO), (EURO, 2 * EURO)]


def test_an_end_lets_the_list_hold_again(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = sold(4 * EURO)
    version = agree(tenant, offering, EURO, START)
    own_prices.end(version, at=LATER, actor=OPERATOR, now=NOW)
    assert own(tenant) == [(START, LATER, EURO)]
    with as_tenant(tenant.pk):
        found = prices.at(LATER, currency="EUR", tenant=tenant.pk)[offering.pk]
    assert (found.nano_per_hour, found.own) == (4 * EURO, False)


@pytest.mark.parametrize("when", [NOW - timedelta(seconds=1), START, LATER + minutes(1)])
def test_an_end_is_not_in_the_past_not_before_the_beginning_and_not_later_than_planned(
    kestrel: tuple[Tenant, Project], when: datetime
) -> None:
    tenant, _ = kestrel
    version = agree(tenant, sold(4 * EURO), EURO, START, until=LATER)
    with pytest.raises(Invalid, match="after it began"):
        own_prices.end(version, at=when, actor=OPERATOR, now=NOW)
    assert own(tenant) == [(START, LATER, EURO)]


def test_the_lists_price_is_none_of_a_tenant(kestrel: tuple[Tenant, Project]) -> None:
    for pk in (str(sold(EURO).price_versions.get().pk), "x"):
        with as_staff(), pytest.raises(Missing):
            own_prices.find(pk)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"nano": -1}, "nought or more"),
        ({"nano": 10**16}, "at most a million"),
        ({"nano": 0}, "would pay nothing"),
        ({"since": NOW - timedelta(seconds=1)}, "begins now or later"),
        ({"until": NOW}, "ends after it begins"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_kept(
    kestrel: tuple[Tenant, Project], asked: dict[str, Any], words: str
) -> None:
    tenant, _ = kestrel
    given = {"nano": EURO, "since": NOW, **asked}
    with pytest.raises(Invalid, match=words):
        agree(tenant, sold(EURO), given.pop("nano"), given.pop("since"), now=NOW, **given)
    assert own(tenant) == []


def test_nought_that_is_meant_is_a_price(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    agree(tenant, offering, 0, START, free=True)
    ran(project, offering, START, HOUR)
    rating.rate(now=NOW)
    assert [(c.unit_seconds, int(c.exact_num)) for c in charges(tenant)] == [(HOUR, 0)]


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (LATER, None),  # begins with it
        (NOW, None),  # would run over it
        (LATER + minutes(1), LATER + minutes(2)),  # would cut a hole into it
        (NOW, LATER + minutes(1)),
    ],
)
def test_two_prices_at_a_time_are_refused(
    kestrel: tuple[Tenant, Project], since: datetime, until: datetime | None
) -> None:
    tenant, _ = kestrel
    offering = sold(EURO)
    agree(tenant, offering, EURO, LATER, until=LATER + minutes(60))
    with pytest.raises(PriceOverlaps, match="one price holds at a time"):
        agree(tenant, offering, 2 * EURO, since, until=until)
    assert own(tenant) == [(LATER, LATER + minutes(60), EURO)]


def test_a_price_between_two_is_let_in(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = sold(EURO)
    agree(tenant, offering, EURO, LATER)
    agree(tenant, offering, 2 * EURO, NOW, until=LATER)
    assert own(tenant) == [(NOW, LATER, 2 * EURO), (LATER, None, EURO)]


def test_a_second_that_is_charged_keeps_its_price(kestrel: tuple[Tenant, Project]) -> None:
    """`now` passed long before it is written, and meanwhile the list was charged."""
    tenant, project = kestrel
    offering = sold(EURO)
    version = agree(tenant, offering, EURO, START - minutes(90))
    ran(project, offering, START, HOUR)
    rating.rate(now=NOW)
    early = START + minutes(30)
    with pytest.raises(PriceFixed):
        agree(tenant, offering, 2 * EURO, early, now=early)
    with pytest.raises(PriceFixed):
        own_prices.end(version, at=early, actor=OPERATOR, now=early)
    assert own(tenant) == [(START - minutes(90), None, EURO)]


def test_saying_it_again_finds_what_stands(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = sold(EURO)
    version = agree(tenant, offering, EURO, NOW, until=LATER)
    with as_tenant(tenant.pk):
        same = own_prices.standing(tenant, offering, nano_per_hour=EURO, since=NOW, until=LATER)
        assert same == version
        assert own_prices.standing(tenant, offering, nano_per_hour=EURO, since=NOW, until=None) is None


def test_a_price_is_of_whom_its_card_is(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    asked = {"offering": sold(None), "currency": "EUR", "nano_per_hour": 1, "created_at": NOW}
    valid = DateTimeTZRange(NOW, None)
    with (
        as_tenant(tenant.pk),
        pytest.raises(DatabaseError, match="of whom its card is"),
        transaction.atomic(),
    ):
        PriceVersion.objects.create(tenant_id=tenant.pk, rate_card=prices.list_card(), valid=valid, **asked)


def test_a_tenant_writes_no_card_for_another(kestrel: tuple[Tenant, Project]) -> None:
    other, _ = customer()
    with as_tenant(kestrel[0].pk), pytest.raises(DatabaseError, match="row-level"), transaction.atomic():
        RateCard.objects.create(name="own", tenant_id=other.pk)


def test_a_new_price_on_the_list_leaves_own_prices_as_they_are(kestrel: tuple[Tenant, Project]) -> None:
    """Tried on last month, what a tenant paid by its own price stays; tried as its own, that is what changes."""
    tenant, project = kestrel
    offering, october = sold(4 * EURO), at("2026-10-10 00:00:00")
    agree(tenant, offering, EURO, october, until=october + minutes(60))
    ran(project, offering, october, 2 * HOUR)
    rating.rate(now=NOW)
    with as_staff():
        by_list = repricing.preview(offering, currency="EUR", nano_per_hour=8 * EURO, now=NOW)
        alone = repricing.preview(offering, currency="EUR", nano_per_hour=2 * EURO, now=NOW, tenant=tenant.pk)
        nobody = repricing.preview(offering, currency="EUR", nano_per_hour=EURO, now=NOW, tenant="ten_x")
    assert (by_list.was_minor, by_list.would_be_minor, by_list.kept_minor) == (500, 900, 100)
    assert (alone.was_minor, alone.would_be_minor, alone.kept_minor) == (500, 400, 0)
    assert nobody.effects == ()


def test_a_change_of_the_list_beside_an_own_price_cuts_only_what_the_list_holds(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering = sold(4 * EURO)
    agree(tenant, offering, EURO, START + minutes(10), until=START + minutes(30))
    reprice(offering, 6 * EURO, since=START + minutes(20))
    ran(project, offering, START, HOUR)
    rating.rate(now=NOW)
    assert [(c.unit_seconds, int(c.exact_num) // c.unit_seconds // EURO) for c in charges(tenant)] == [
        (600, 4),
        (1200, 1),
        (1800, 6),
    ]
