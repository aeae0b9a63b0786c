"""Tenant prices: precedence, validity, overlap and isolation."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import InvoiceLine, PriceVersion, RateCard
from billing.models.prices import list_rate_card
from billing.services.catalogue import price_list, tenant_prices
from billing.services.catalogue.price_list import PriceAlreadyCharged
from billing.services.catalogue.tenant_prices import PriceOverlaps
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating, spend, unpriced_usage
from billing.services.reports import earnings, line_explanations, price_impact
from billing.verify import verify
from broker.models import Offering
from tenants.models import AuditEvent, Project, Tenant
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    add_quote,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
START = utc("2026-11-20 00:00:00")
LATER = NOW + timedelta(days=1)


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return create_customer("Europe/Berlin")


def create_tenant_price(tenant: Tenant, offering: Offering, nano: int, since: datetime, **more: Any) -> PriceVersion:
    values = {"now": min(since, NOW), "actor": OPERATOR, **more}
    return tenant_prices.set_tenant_price(tenant=tenant, offering=offering, nano_per_hour=nano, since=since, **values)


def tenant_price_versions(tenant: Tenant) -> list[tuple[object, object, int]]:
    with tenant_scope(tenant.pk):
        rows = PriceVersion.objects.filter(tenant_id=tenant.pk).order_by("valid")
        return [(row.valid.lower, row.valid.upper, row.nano_per_hour) for row in rows]


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def test_the_tenant_price_applies_within_its_period_and_the_list_price_outside(
    kestrel: tuple[Tenant, Project],
) -> None:
    """One list price holds in two parts: two charges on one line."""
    tenant, project = kestrel
    offering = create_priced_offering(4 * EURO)
    create_tenant_price(tenant, offering, EURO, START + minutes(15), until=START + minutes(45))
    lease = add_ended_lease(project, offering, START, HOUR, quantity=2)
    lease_rating.rate_all_leases(now=NOW)
    assert [(c.lease_id, c.part, c.s, c.unit_seconds, int(c.exact_num)) for c in charges_of(tenant)] == [
        (lease.pk, 0, START, 1800, 1800 * 4 * EURO),
        (lease.pk, 0, START + minutes(15), 3600, 3600 * EURO),
        (lease.pk, 1, START + minutes(45), 1800, 1800 * 4 * EURO),
    ]
    drafts.refresh_drafts(tenant, now=NOW)
    (invoice,) = invoices_of(tenant)
    assert [(line.unit_seconds, line.minor) for line in invoice_lines(invoice)] == [(3600, 400), (3600, 100)]
    assert lease_rating.rate_all_leases(now=NOW, whole=True).written == 0
    with tenant_scope(tenant.pk):
        report = verify.check(b"".join(invoice_bundles.build_bundle(invoice)))
        assert (report.differences, report.total) == ([], 500)
        for line in InvoiceLine.objects.select_related("invoice"):
            assert line_explanations.explain_invoice_line(line).recomputed_equal


def test_other_tenants_pay_the_list_price(kestrel: tuple[Tenant, Project]) -> None:
    tenant, other = kestrel[0], create_customer()
    offering = create_priced_offering(4 * EURO)
    create_tenant_price(tenant, offering, EURO, START)
    add_ended_lease(other[1], offering, START, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert [int(c.exact_num) for c in charges_of(other[0])] == [HOUR * 4 * EURO]
    with tenant_scope(other[0].pk):
        assert price_list.prices_at(NOW, currency="EUR", tenant=other[0].pk)[offering.pk].nano_per_hour == 4 * EURO
        assert PriceVersion.objects.filter(tenant_id__isnull=False).count() == 0, "others do not even see it"


def test_a_tenant_price_below_a_quote_is_charged(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(4 * EURO)
    lease = add_ended_lease(project, offering, START, HOUR)
    add_quote(lease, offering.price_versions.get())
    create_tenant_price(tenant, offering, EURO, START)
    lease_rating.rate_all_leases(now=NOW)
    assert [int(c.exact_num) for c in charges_of(tenant)] == [HOUR * EURO]


def test_a_tenant_price_suffices_without_a_list_price(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(None)
    create_tenant_price(tenant, offering, EURO, START + minutes(30))
    add_ended_lease(project, offering, START + minutes(30), HOUR // 2)
    held_up, other = add_ended_lease(project, offering, START, HOUR), create_customer()
    add_ended_lease(other[1], offering, START, HOUR)
    found = lease_rating.rate_all_leases(now=NOW)
    assert sorted((gap.tenant, gap.lease == held_up.pk, gap.unit_seconds) for gap in found.gaps) == sorted(
        [(tenant.pk, True, HOUR // 2), (other[0].pk, False, HOUR)]
    )
    with staff_scope():
        missing = {(each.lease == held_up.pk, each.unit_seconds) for each in unpriced_usage.unpriced_usage(now=NOW)}
    assert missing == {(True, HOUR // 2), (False, HOUR)}


def test_a_running_lease_shows_the_tenants_own_price_before_rating(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(4 * EURO)
    create_tenant_price(tenant, offering, EURO, NOW - minutes(30))
    lease = add_running_lease(project, offering, NOW - minutes(60))
    with tenant_scope(tenant.pk):
        assert spend.hourly_spend(None, tenant, now=NOW) == EURO
        assert spend.costs_of([lease.pk], now=NOW)[lease.pk].minor == 250
        assert price_list.price_history(offering.pk, currency="EUR", tenant=tenant.pk)[1:] == [
            (NOW - minutes(30), EURO)
        ]
    with staff_scope():
        assert earnings.hourly_revenue(now=NOW) == {"EUR": EURO}
        assert earnings.revenue_over((NOW - minutes(60), NOW)) == [{"EUR": 1800 * 5 * EURO}]


def test_the_next_tenant_price_ends_the_current_one_and_both_are_audited(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, _ = kestrel
    offering = create_priced_offering(4 * EURO)
    create_tenant_price(tenant, offering, EURO, START)
    create_tenant_price(tenant, offering, 2 * EURO, LATER)
    assert tenant_price_versions(tenant) == [(START, LATER, EURO), (LATER, None, 2 * EURO)]
    with tenant_scope(tenant.pk):
        trail = AuditEvent.objects.filter(action="price.agree").order_by("at")
        assert [(e.detail["before"], e.detail["after"]) for e in trail] == [(None, EURO), (EURO, 2 * EURO)]


def test_the_list_price_applies_again_after_a_tenant_price_ends(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = create_priced_offering(4 * EURO)
    version = create_tenant_price(tenant, offering, EURO, START)
    tenant_prices.end_tenant_price(version, at=LATER, actor=OPERATOR, now=NOW)
    assert tenant_price_versions(tenant) == [(START, LATER, EURO)]
    with tenant_scope(tenant.pk):
        found = price_list.prices_at(LATER, currency="EUR", tenant=tenant.pk)[offering.pk]
    assert (found.nano_per_hour, found.own) == (4 * EURO, False)


@pytest.mark.parametrize("when", [NOW - timedelta(seconds=1), START, LATER + minutes(1)])
def test_a_tenant_price_cannot_end_in_the_past_before_its_start_or_later_than_planned(
    kestrel: tuple[Tenant, Project], when: datetime
) -> None:
    tenant, _ = kestrel
    version = create_tenant_price(tenant, create_priced_offering(4 * EURO), EURO, START, until=LATER)
    with pytest.raises(InvalidValue, match="must be after the start"):
        tenant_prices.end_tenant_price(version, at=when, actor=OPERATOR, now=NOW)
    assert tenant_price_versions(tenant) == [(START, LATER, EURO)]


def test_a_list_price_is_not_found_as_a_tenant_price(kestrel: tuple[Tenant, Project]) -> None:
    for pk in (str(create_priced_offering(EURO).price_versions.get().pk), "x"):
        with staff_scope(), pytest.raises(ObjectNotFound):
            tenant_prices.find_tenant_price(pk)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"nano": -1}, "The price must be 0 to"),
        ({"nano": 10**16}, "The price must be 0 to"),
        ({"nano": 0}, "makes the offering free for this tenant"),
        ({"since": NOW - timedelta(seconds=1)}, "must start now or later"),
        ({"until": NOW}, "The end must be after the start"),
    ],
)
def test_an_invalid_tenant_price_is_refused_and_not_stored(
    kestrel: tuple[Tenant, Project], wanted: dict[str, Any], words: str
) -> None:
    tenant, _ = kestrel
    given = {"nano": EURO, "since": NOW, **wanted}
    with pytest.raises(InvalidValue, match=words):
        create_tenant_price(
            tenant, create_priced_offering(EURO), given.pop("nano"), given.pop("since"), now=NOW, **given
        )
    assert tenant_price_versions(tenant) == []


def test_an_explicit_zero_is_a_valid_price(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    create_tenant_price(tenant, offering, 0, START, free=True)
    add_ended_lease(project, offering, START, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert [(c.unit_seconds, int(c.exact_num)) for c in charges_of(tenant)] == [(HOUR, 0)]


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (LATER, None),  # begins with it
        (NOW, None),  # would run over it
        (LATER + minutes(1), LATER + minutes(2)),  # would cut a hole into it
        (NOW, LATER + minutes(1)),
    ],
)
def test_overlapping_tenant_prices_are_refused(
    kestrel: tuple[Tenant, Project], since: datetime, until: datetime | None
) -> None:
    tenant, _ = kestrel
    offering = create_priced_offering(EURO)
    create_tenant_price(tenant, offering, EURO, LATER, until=LATER + minutes(60))
    with pytest.raises(PriceOverlaps, match="already has a custom price"):
        create_tenant_price(tenant, offering, 2 * EURO, since, until=until)
    assert tenant_price_versions(tenant) == [(LATER, LATER + minutes(60), EURO)]


def test_a_tenant_price_that_ends_where_the_next_starts_is_accepted(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = create_priced_offering(EURO)
    create_tenant_price(tenant, offering, EURO, LATER)
    create_tenant_price(tenant, offering, 2 * EURO, NOW, until=LATER)
    assert tenant_price_versions(tenant) == [(NOW, LATER, 2 * EURO), (LATER, None, EURO)]


def test_the_tenant_price_of_a_charged_second_cannot_change(kestrel: tuple[Tenant, Project]) -> None:
    """`now` passed long before it is written, and meanwhile the list was charged."""
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    version = create_tenant_price(tenant, offering, EURO, START - minutes(90))
    add_ended_lease(project, offering, START, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    early = START + minutes(30)
    with pytest.raises(PriceAlreadyCharged):
        create_tenant_price(tenant, offering, 2 * EURO, early, now=early)
    with pytest.raises(PriceAlreadyCharged):
        tenant_prices.end_tenant_price(version, at=early, actor=OPERATOR, now=early)
    assert tenant_price_versions(tenant) == [(START - minutes(90), None, EURO)]


def test_a_repeated_tenant_price_is_found_as_identical(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    offering = create_priced_offering(EURO)
    version = create_tenant_price(tenant, offering, EURO, NOW, until=LATER)
    with tenant_scope(tenant.pk):
        same = tenant_prices.find_identical_price(tenant, offering, nano_per_hour=EURO, since=NOW, until=LATER)
        assert same == version
        assert tenant_prices.find_identical_price(tenant, offering, nano_per_hour=EURO, since=NOW, until=None) is None


def test_a_price_belongs_to_the_tenant_of_its_rate_card(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    values = {"offering": create_priced_offering(None), "currency": "EUR", "nano_per_hour": 1, "created_at": NOW}
    valid = DateTimeTZRange(NOW, None)
    with (
        tenant_scope(tenant.pk),
        pytest.raises(DatabaseError, match="belongs to the tenant of its rate card"),
        transaction.atomic(),
    ):
        PriceVersion.objects.create(tenant_id=tenant.pk, rate_card=list_rate_card(), valid=valid, **values)


def test_a_tenant_cannot_create_a_rate_card_for_another_tenant(kestrel: tuple[Tenant, Project]) -> None:
    other, _ = create_customer()
    with tenant_scope(kestrel[0].pk), pytest.raises(DatabaseError, match="row-level"), transaction.atomic():
        RateCard.objects.create(name="own", tenant_id=other.pk)


def test_a_list_price_preview_leaves_tenant_prices_unchanged(kestrel: tuple[Tenant, Project]) -> None:
    """A preview changes only tenants without a price of their own."""
    tenant, project = kestrel
    offering, october = create_priced_offering(4 * EURO), utc("2026-10-10 00:00:00")
    create_tenant_price(tenant, offering, EURO, october, until=october + minutes(60))
    add_ended_lease(project, offering, october, 2 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with staff_scope():
        by_list = price_impact.preview_price(offering, currency="EUR", nano_per_hour=8 * EURO, now=NOW)
        alone = price_impact.preview_price(offering, currency="EUR", nano_per_hour=2 * EURO, now=NOW, tenant=tenant.pk)
        nobody = price_impact.preview_price(offering, currency="EUR", nano_per_hour=EURO, now=NOW, tenant="ten_x")
    assert (by_list.was_minor, by_list.would_be_minor, by_list.kept_minor) == (500, 900, 100)
    assert (alone.was_minor, alone.would_be_minor, alone.kept_minor) == (500, 400, 0)
    assert nobody.effects == ()


def test_a_list_price_change_affects_only_usage_without_a_tenant_price(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(4 * EURO)
    create_tenant_price(tenant, offering, EURO, START + minutes(10), until=START + minutes(30))
    set_price(offering, 6 * EURO, since=START + minutes(20))
    add_ended_lease(project, offering, START, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert [(c.unit_seconds, int(c.exact_num) // c.unit_seconds // EURO) for c in charges_of(tenant)] == [
        (600, 4),
        (1200, 1),
        (1800, 6),
    ]
