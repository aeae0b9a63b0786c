"""Publication and immutability of list prices."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from pytest_django import DjangoAssertNumQueries

from billing.models import PriceVersion
from billing.services.catalogue import price_list
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.billing.histories import EURO, LONG_AGO, OPERATOR, create_priced_offering, set_price, utc

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
LATER = utc("2026-12-01 00:00:00")


def versions() -> list[tuple[object, object, int]]:
    return [(v.valid.lower, v.valid.upper, v.nano_per_hour) for v in PriceVersion.objects.order_by("valid")]


def test_a_new_price_ends_the_current_one_at_its_start() -> None:
    offering = create_priced_offering(EURO)
    price_list.publish_price(
        offering=offering, currency="EUR", nano_per_hour=2 * EURO, since=LATER, actor=OPERATOR, now=NOW
    )
    assert versions() == [(LONG_AGO, LATER, EURO), (LATER, None, 2 * EURO)]
    assert price_list.price_of(offering, currency="EUR", moment=LATER - timedelta(seconds=1)).nano_per_hour == EURO
    assert price_list.price_of(offering, currency="EUR", moment=LATER).nano_per_hour == 2 * EURO


def test_a_price_before_a_scheduled_one_ends_where_that_one_starts() -> None:
    offering = create_priced_offering(EURO)
    for nano, since in ((3 * EURO, LATER), (2 * EURO, NOW)):
        price_list.publish_price(
            offering=offering, currency="EUR", nano_per_hour=nano, since=since, actor=OPERATOR, now=NOW
        )
    assert versions() == [(LONG_AGO, NOW, EURO), (NOW, LATER, 2 * EURO), (LATER, None, 3 * EURO)]


def test_a_price_starts_on_a_whole_second() -> None:
    soon = NOW + timedelta(microseconds=1)
    later = price_list.publish_price(
        offering=create_priced_offering(None), currency="EUR", nano_per_hour=1, since=soon, actor=OPERATOR, now=NOW
    )
    assert later.valid.lower == NOW + timedelta(seconds=1)


def test_a_price_set_now_is_valid_now() -> None:
    offering, now = create_priced_offering(EURO), NOW + timedelta(microseconds=400_000)
    set_price(offering, 2 * EURO, since=now)
    assert price_list.price_of(offering, currency="EUR", moment=now).nano_per_hour == 2 * EURO
    first = set_price(create_priced_offering(None), EURO, since=now)
    assert first.valid.lower == NOW


def test_two_prices_set_within_a_second_follow_each_other() -> None:
    offering, now = create_priced_offering(None), NOW + timedelta(microseconds=400_000)
    set_price(offering, EURO, since=now)
    set_price(offering, 2 * EURO, since=now + timedelta(microseconds=1))
    assert versions() == [(NOW, NOW + timedelta(seconds=1), EURO), (NOW + timedelta(seconds=1), None, 2 * EURO)]


@pytest.mark.parametrize("since", [NOW - timedelta(seconds=1), LONG_AGO])
def test_b26_a_price_starting_in_the_past_is_refused(since: object) -> None:
    offering = create_priced_offering(EURO)
    with pytest.raises(price_list.PriceAlreadyCharged):
        price_list.publish_price(
            offering=offering, currency="EUR", nano_per_hour=1, since=since, actor=OPERATOR, now=NOW
        )
    assert versions() == [(LONG_AGO, None, EURO)]


def test_a_second_price_at_the_start_of_a_scheduled_one_is_refused() -> None:
    offering = create_priced_offering(EURO, since=LATER)
    with pytest.raises(price_list.PriceAlreadyCharged):
        price_list.publish_price(
            offering=offering, currency="EUR", nano_per_hour=1, since=LATER, actor=OPERATOR, now=NOW
        )


def test_a_price_gap_in_the_past_can_be_filled() -> None:
    offering = create_priced_offering(EURO, since=NOW)
    version = set_price(offering, 2 * EURO, since=LONG_AGO)
    assert (version.valid.lower, version.valid.upper) == (LONG_AGO, NOW)


def test_publishing_a_price_is_audited_with_both_prices() -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=NOW)
    with staff_scope():
        event = AuditEvent.objects.filter(action="price.publish").latest("at")
    assert (event.actor_id, event.subject_id) == (OPERATOR.id, offering.pk)
    assert (event.detail["before"], event.detail["after"]) == (EURO, 2 * EURO)


@pytest.mark.parametrize(("field", "value"), [("currency", "XXX"), ("nano_per_hour", -1), ("nano_per_hour", 10**16)])
def test_an_invalid_price_is_refused_at_its_field(field: str, value: object) -> None:
    values = {"currency": "EUR", "nano_per_hour": EURO, field: value}
    with pytest.raises(InvalidValue) as refusal:
        price_list.publish_price(offering=create_priced_offering(None), since=NOW, actor=OPERATOR, now=NOW, **values)
    assert refusal.value.field == field


def test_an_offering_without_a_price_is_refused_and_listed() -> None:
    priced, unpriced = create_priced_offering(EURO), create_priced_offering(None)
    with pytest.raises(price_list.NoPrice):
        price_list.price_of(unpriced, currency="EUR", moment=NOW)
    assert price_list.offerings_without_price(currency="EUR", moment=NOW) == [unpriced]
    assert price_list.offerings_without_price(currency="USD", moment=NOW) == [priced, unpriced]


def test_the_prices_of_all_offerings_take_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    offerings = [create_priced_offering(EURO) for _ in range(5)]
    with django_assert_num_queries(1):
        found = price_list.prices_at(NOW, currency="EUR", offerings=[offering.pk for offering in offerings[:3]])
    assert set(found) == {offering.pk for offering in offerings[:3]}
    assert len(price_list.prices_at(NOW, currency="EUR")) == 5


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE billing_priceversion SET nano_per_hour = 1",
        "UPDATE billing_priceversion SET currency = 'USD'",
        "UPDATE billing_priceversion SET valid = tstzrange('2019-01-01Z', NULL)",
        "DELETE FROM billing_priceversion",
    ],
)
def test_postgresql_refuses_to_edit_or_delete_a_price_version(sql: str) -> None:
    create_priced_offering(EURO)
    with (
        pytest.raises(DatabaseError, match="only closed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_postgresql_refuses_to_reopen_a_closed_price_version() -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=NOW)
    for wider in (
        DateTimeTZRange(LONG_AGO, LATER),
        DateTimeTZRange(LONG_AGO, None),
        DateTimeTZRange(empty=True),
    ):
        with pytest.raises(DatabaseError, match="only closed"), transaction.atomic():
            PriceVersion.objects.filter(nano_per_hour=EURO).update(valid=wider)


def test_postgresql_refuses_overlapping_prices() -> None:
    version = set_price(create_priced_offering(None), EURO, since=NOW)
    with pytest.raises(IntegrityError, match="one_price_at_a_time"), transaction.atomic():
        PriceVersion.objects.create(
            rate_card=version.rate_card,
            offering=version.offering,
            currency="EUR",
            valid=DateTimeTZRange(LATER, None),
            nano_per_hour=1,
            created_at=NOW,
        )
