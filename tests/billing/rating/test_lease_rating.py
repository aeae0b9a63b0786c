"""Lease rating in SQL: charges, price gaps, batches and immutability."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain import rating as oracle
from billing.domain.periods import Period
from billing.models import PriceVersion, Quote, RatedCharge, RatingWatermark
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.models import Offering, Transition
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    LONG_AGO,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    periods_of,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/St_Johns",
)
# Seconds around a month's end, a clock change and a plain day, so that borders are met often.
CORNERS = (
    utc("2026-10-25 00:59:58"),
    utc("2026-10-31 22:59:58"),
    utc("2026-11-01 03:59:58"),
    utc("2026-11-20 08:00:00"),
)


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def oracle_charges(tenant: Tenant) -> set[tuple[Any, ...]]:
    """Return the charges that the Python oracle computes.

    Moments are brought to UTC: within one other zone Python takes the repeated hour for the first one twice.
    """
    with tenant_scope(tenant.pk):
        steps = [
            oracle.RatedTransition(
                t.lease_id,
                t.seq,
                t.at.astimezone(UTC),
                LeaseState(t.after),
                t.offering_id,
                t.quantity,
                PriceClass.ON_DEMAND,
                t.reason == "preempted",
            )
            for t in Transition.objects.all()
        ]
    prices = [
        oracle.RatedPrice(
            str(v.pk),
            v.offering_id,
            PriceClass.ON_DEMAND,
            v.valid.lower.astimezone(UTC),
            v.valid.upper and v.valid.upper.astimezone(UTC),
            v.nano_per_hour,
            free_start_s=v.free_start_s,
        )
        for v in PriceVersion.objects.filter(currency=tenant.currency)
    ]
    periods = {
        str(m.pk): Period(m.span.lower.astimezone(UTC), m.span.upper.astimezone(UTC)) for m in periods_of(tenant)
    }
    with tenant_scope(tenant.pk):
        cited = dict(Quote.objects.values_list("lease_id", "price_version_id"))
    by_version = {price.version: price for price in prices}
    promised = {lease: by_version[str(version)] for lease, version in cited.items()}
    rated = oracle.rate_usage(steps, prices, periods, promised)
    assert rated.unrated == ()
    return {
        (c.lease, c.seq, int(c.version), int(c.period), c.span.start, c.span.end, c.unit_seconds, c.exact_num)
        for c in rated.charges
    }


def database_charges(tenant: Tenant) -> set[tuple[Any, ...]]:
    """Return all charges in UTC, to compare repeated hours."""
    return {
        (c.lease_id, c.seq, c.price_version_id, c.period_id, c.s.astimezone(UTC), c.e.astimezone(UTC), c.unit_seconds,
         int(c.exact_num))
        for c in charges_of(tenant)
    }  # fmt: skip


def assert_nothing_written(outcome: lease_rating.RatingOutcome) -> None:
    """Assert that a run wrote nothing, and that PostgreSQL refused nothing."""
    assert (outcome.written, outcome.unit_seconds, outcome.gaps, outcome.broken) == (0, 0, (), ())


@st.composite
def ordered_times(draw: st.DrawFn, count: int) -> list[datetime]:
    start = draw(st.sampled_from(CORNERS))
    unit = draw(st.sampled_from([1, 1, 1800, 86_400, 15 * 86_400]))
    offsets = sorted(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    return [start + timedelta(seconds=offset * unit) for offset in offsets]


@st.composite
def lease_steps(draw: st.DrawFn) -> list[tuple[datetime, LeaseState]]:
    middle = draw(st.lists(st.sampled_from([S.ACTIVE, S.ACTIVE, S.STOPPED, S.PROVISIONING]), min_size=1, max_size=5))
    states = [S.REQUESTED, *middle, S.RELEASED]
    return list(zip(draw(ordered_times(len(states))), states, strict=True))


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_sql_rating_equals_the_oracle_exactly(data: st.DataObject) -> None:
    with undone():
        offerings = [create_priced_offering(data.draw(st.integers(0, 10**12), label="price")) for _ in range(2)]
        cuts = data.draw(st.lists(st.sampled_from(CORNERS), max_size=3, unique=True), label="price changes")
        for offering in offerings:
            for cut in sorted(cuts):
                set_price(offering, data.draw(st.integers(0, 10**12)), since=cut)
        tenants, versions = [], list(PriceVersion.objects.order_by("pk"))
        for zone in data.draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=3), label="zones"):
            tenant, project = create_customer(zone)
            tenants.append(tenant)
            for life in data.draw(st.lists(lease_steps(), min_size=1, max_size=3), label="lives"):
                size = len(life)
                terms = data.draw(
                    st.lists(st.tuples(st.sampled_from(offerings), st.integers(1, 9)), min_size=size, max_size=size)
                )
                lease = add_lease_history(project, offerings[0], life, terms=terms)
                if data.draw(st.booleans(), label="cites a quote"):
                    add_quote(lease, data.draw(st.sampled_from(versions), label="of which price"))
        outcome = lease_rating.rate_all_leases(now=NOW)
        expected = [oracle_charges(tenant) for tenant in tenants]
        assert [database_charges(tenant) for tenant in tenants] == expected
        assert outcome.written == sum(len(each) for each in expected)
        assert outcome.unit_seconds == sum(charge[6] for each in expected for charge in each)
        assert_nothing_written(lease_rating.rate_all_leases(now=NOW, whole=True))
        assert [database_charges(tenant) for tenant in tenants] == expected


def test_a_second_rating_run_writes_nothing() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), HOUR)
    first = lease_rating.rate_all_leases(now=NOW)
    again = lease_rating.rate_all_leases(now=NOW)
    assert (first.written, first.unit_seconds, first.tenants) == (1, HOUR, (tenant.pk,))
    assert_nothing_written(again)
    assert_nothing_written(lease_rating.rate_all_leases(now=NOW, whole=True))


def test_a_rating_run_without_usage_has_an_empty_outcome() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"))
    assert lease_rating.rate_all_leases(now=NOW) == lease_rating.RatingOutcome()
    assert lease_rating.rate_tenant_leases(tenant, now=NOW) == lease_rating.RatingOutcome()


def test_rating_a_tenant_charges_no_other_tenant() -> None:
    mine, project = create_customer()
    other, elsewhere = create_customer()
    offering = create_priced_offering()
    add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
    add_ended_lease(elsewhere, offering, utc("2026-11-20 08:00:00"), 60)
    assert lease_rating.rate_tenant_leases(mine, now=NOW).written == 1
    assert (len(charges_of(mine)), len(charges_of(other))) == (1, 0)


def test_a_charge_has_the_tenant_and_project_of_its_lease() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 90, quantity=3)
    lease_rating.rate_all_leases(now=NOW)
    (charge,) = charges_of(tenant)
    assert (charge.tenant_id, charge.project_id, charge.offering_id) == (tenant.pk, project.pk, offering.pk)
    assert (charge.lease_id, charge.seq, charge.unit_seconds) == (lease.pk, 2, 270)
    assert int(charge.exact_num) == 270 * 2 * EURO
    assert charge.billed_period_id == charge.period_id


def test_a_price_gap_is_raised_with_its_rows_and_charges_nothing_of_its_tenant() -> None:
    tenant, project = create_customer()
    priced, unpriced = create_priced_offering(), create_priced_offering(None)
    add_ended_lease(project, priced, utc("2026-11-20 08:00:00"), HOUR)
    lease = add_ended_lease(project, unpriced, utc("2026-11-20 08:00:00"), 60, quantity=2)
    with pytest.raises(lease_rating.PriceGap) as caught:
        lease_rating.rate_tenant_leases(tenant, now=NOW)
    (gap,) = caught.value.gaps
    assert (gap.tenant, gap.lease, gap.seq, gap.unit_seconds) == (tenant.pk, lease.pk, 2, 120)
    assert lease.pk in str(caught.value)
    assert "Publish a price" in str(caught.value)
    assert charges_of(tenant) == []


def test_a_price_gap_blocks_only_its_own_tenant_until_it_is_priced() -> None:
    (bad, project), (good, elsewhere) = create_customer(), create_customer()
    offering = create_priced_offering(EURO, since=utc("2026-11-20 08:00:30"))
    add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
    add_ended_lease(elsewhere, offering, utc("2026-11-20 09:00:00"), 60)
    outcome = lease_rating.rate_all_leases(now=NOW)
    assert [(gap.lease, gap.unit_seconds) for gap in outcome.gaps] != []
    assert [gap.unit_seconds for gap in outcome.gaps] == [30]
    assert (charges_of(bad), len(charges_of(good))) == ([], 1)
    set_price(offering, EURO, since=utc("2026-11-20 08:00:00"))
    repaired = lease_rating.rate_all_leases(now=NOW)
    assert (repaired.written, repaired.gaps) == (2, ())
    assert sum(charge.unit_seconds for charge in charges_of(bad)) == 60


def test_nothing_is_charged_when_every_tenant_has_a_price_gap() -> None:
    _tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(None), utc("2026-11-20 08:00:00"), 60)
    outcome = lease_rating.rate_all_leases(now=NOW)
    assert (outcome.written, len(outcome.gaps)) == (0, 1)


def test_an_error_about_many_price_gaps_is_abbreviated() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    for _ in range(7):
        add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
    with pytest.raises(lease_rating.PriceGap, match="and 2 more"):
        lease_rating.rate_tenant_leases(tenant, now=NOW)


def test_a_bulk_rating_run_restores_the_planner_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_rating, "BULK_THRESHOLD", 1)
    _tenant, project = create_customer()
    offering = create_priced_offering()
    for _ in range(3):
        add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
    assert lease_rating.rate_all_leases(now=NOW).written == 3
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_nestloop")
        assert cursor.fetchone() == ("on",)


def test_a_rating_backlog_is_charged_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_rating, "MAX_BATCH_INTERVALS", 3)
    offering, tenants = create_priced_offering(), []
    for count in (2, 1, 5, 1):
        tenant, project = create_customer()
        tenants.append(tenant.pk)
        for _ in range(count):
            add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
    outcome = lease_rating.rate_all_leases(now=NOW)
    assert (outcome.written, outcome.unit_seconds) == (9, 540)
    assert sorted(outcome.tenants) == sorted(tenants)


def test_a_lost_database_connection_is_not_attributed_to_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        _tenant, project = create_customer()
        add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), 60)
    requests = []

    def away(news: list[Any], **_: Any) -> None:
        requests.append(news)
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(lease_rating, "_charge_usage", away)
    with pytest.raises(OperationalError):
        lease_rating.rate_all_leases(now=NOW)
    assert len(requests) == 1


def test_a_watermark_from_another_postgresql_cluster_is_ignored() -> None:
    tenant, project = create_customer()
    with tenant_scope(tenant.pk):
        RatingWatermark.objects.create(tenant=tenant, xid=2**60)
    add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), 60)
    assert lease_rating.rate_all_leases(now=NOW).written == 1


def test_the_worker_role_cannot_change_charges() -> None:
    _tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), 60)
    lease_rating.rate_all_leases(now=NOW)
    with pytest.raises(DatabaseError), system_scope():
        RatedCharge.objects.update(unit_seconds=1)


@pytest.mark.parametrize("verb", ["UPDATE billing_ratedcharge SET unit_seconds = 1", "DELETE FROM billing_ratedcharge"])
def test_a_charge_cannot_be_changed_or_deleted(verb: str) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), 60)
    lease_rating.rate_all_leases(now=NOW)
    with pytest.raises(DatabaseError), tenant_scope(tenant.pk), connection.cursor() as cursor:
        cursor.execute(verb)
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [60]


def test_b10_usage_at_exactly_midnight_is_counted_once() -> None:
    tenant, project = create_customer("Europe/Berlin")
    offering, midnight = create_priced_offering(), utc("2026-10-31 23:00:00")
    add_ended_lease(project, offering, midnight - timedelta(seconds=1), 1)
    add_ended_lease(project, offering, midnight, 1)
    add_ended_lease(project, offering, midnight - timedelta(seconds=1), 2)
    lease_rating.rate_all_leases(now=NOW)
    october, november = (month.pk for month in periods_of(tenant))
    assert sorted(charge.period_id for charge in charges_of(tenant)) == sorted([october, november, october, november])
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [1, 1, 1, 1]


def test_b5_months_with_clock_changes_are_charged_by_elapsed_seconds() -> None:
    tenant, project = create_customer("Australia/Lord_Howe")
    add_ended_lease(project, create_priced_offering(), utc("2026-09-30 12:00:00"), 31 * 24 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert sum(charge.unit_seconds for charge in charges_of(tenant)) == 31 * 24 * HOUR


def test_b8_a_time_zone_does_not_change_the_total_charge() -> None:
    sums = set()
    for zone in ZONES:
        tenant, project = create_customer(zone)
        add_ended_lease(project, create_priced_offering(1_040_000_001), utc("2026-10-31 00:00:00"), 3 * 24 * HOUR)
        lease_rating.rate_all_leases(now=NOW)
        sums.add(sum(int(charge.exact_num) for charge in charges_of(tenant)))
    assert sums == {3 * 24 * HOUR * 1_040_000_001}


@pytest.mark.deep
def test_b24_an_offering_change_every_second_is_charged_to_the_second() -> None:
    tenant, project = create_customer()
    dear, cheap = create_priced_offering(2 * EURO), create_priced_offering(EURO)
    start = utc("2026-11-20 08:00:00")
    steps = [(start + timedelta(seconds=n), S.ACTIVE) for n in range(HOUR)]
    add_lease_history(
        project,
        dear,
        [*steps, (start + timedelta(hours=1), S.RELEASED)],
        terms=[(dear, 1), (cheap, 1)] * 1800,
    )
    lease_rating.rate_all_leases(now=NOW)
    found = charges_of(tenant)
    assert len(found) == HOUR
    assert [charge.offering_id for charge in found[:3]] == [dear.pk, cheap.pk, dear.pk]
    assert sum(int(charge.exact_num) for charge in found) == 1800 * 3 * EURO


def test_b25_b26_a_new_price_does_not_change_earlier_charges() -> None:
    tenant, project = create_customer()
    offering, start = create_priced_offering(EURO), utc("2026-11-20 08:00:00")
    add_ended_lease(project, offering, start, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    set_price(offering, 9 * EURO, since=start + timedelta(hours=1))
    assert_nothing_written(lease_rating.rate_all_leases(now=NOW, whole=True))
    assert [int(charge.exact_num) for charge in charges_of(tenant)] == [HOUR * EURO]
    add_ended_lease(project, offering, start + timedelta(minutes=30), HOUR)  # half an hour at each of them
    lease_rating.rate_all_leases(now=NOW)
    found = sorted(int(charge.exact_num) for charge in charges_of(tenant))
    assert found == [HOUR // 2 * EURO, HOUR * EURO, HOUR // 2 * 9 * EURO]


def test_b37_nothing_is_charged_after_the_recorded_end() -> None:
    tenant, project = create_customer()
    start = utc("2026-11-20 08:00:00")
    end = start + timedelta(seconds=10)
    add_lease_history(
        project,
        create_priced_offering(),
        [(start, S.ACTIVE), (end, S.RELEASING), (end + timedelta(hours=5), S.RELEASED)],
    )
    lease_rating.rate_all_leases(now=NOW)
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [10]


def test_queued_provisioning_stopping_and_releasing_time_is_not_charged() -> None:
    tenant, project = create_customer()
    states = [S.REQUESTED, S.QUEUED, S.PROVISIONING, S.ACTIVE, S.STOPPING, S.STOPPED]
    states += [S.QUEUED, S.PROVISIONING, S.ACTIVE, S.RELEASING, S.FAILED, S.RELEASING, S.RELEASED]
    start = utc("2026-11-20 08:00:00")
    add_lease_history(
        project, create_priced_offering(), [(start + timedelta(minutes=n), state) for n, state in enumerate(states)]
    )
    lease_rating.rate_all_leases(now=NOW)
    charged = [(charge.s - start, charge.e - start) for charge in charges_of(tenant)]
    assert charged == [(timedelta(minutes=n), timedelta(minutes=n + 1)) for n in (3, 8)]


def test_b41_a_lease_of_one_second_is_charged_one_second() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(3600 * EURO), utc("2026-11-20 08:00:00"), 1)
    lease_rating.rate_all_leases(now=NOW)
    assert [int(charge.exact_num) for charge in charges_of(tenant)] == [3600 * EURO]


def test_b12_the_primary_key_of_charges_prevents_a_second_charge() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid = 'billing_ratedcharge'::regclass AND contype = 'p'"
        )
        assert cursor.fetchone() == (
            "PRIMARY KEY (lease_id, seq, price_version_id, period_id, meter, kind, part, correction_id)",
        )


def test_b44_no_billing_column_is_a_floating_point_number() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_name LIKE 'billing_%%' AND data_type IN ('real', 'double precision')"
        )
        assert cursor.fetchall() == []


def test_unused_offerings_need_no_price() -> None:
    assert Offering.objects.count() == 0
    create_priced_offering(None)
    assert lease_rating.rate_all_leases(now=LONG_AGO).gaps == ()
