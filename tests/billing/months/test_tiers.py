"""What a month costs at prices in tiers: all of a tenant's use of an offering counts, in one order."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from billing.models import PriceVersion, RateCard
from billing.services import closing, drafts, rating
from billing.services.explain import explain
from billing.services.month_charges import reckoning
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, at, customer, invoices, lines, promise, ran, runs, sold
from tests.billing.months.terms import CLOSES, NOW, START, carried, checked, closed, drafted, given, tiered
from tests.world import home

pytestmark = pytest.mark.django_db


def test_graduated_use_costs_each_part_at_the_price_of_its_tier() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR, 20 * HOUR], [EURO // 2, EURO // 4])
    ran(project, offering, START, 6 * HOUR)
    ran(project, offering, START + timedelta(days=1), 10 * HOUR, quantity=2)
    draft = drafted(tenant)
    assert draft.total == 1000 + 500 + 150  # 10, 10 and 6 hours
    checked(draft)
    final = closed(tenant)
    assert final.total == 1650
    assert carried(tenant) == [("tier", offering.pk, -(10 * EURO // 2 + 6 * EURO * 3 // 4) * HOUR)]
    checked(final)
    with as_tenant(tenant.pk):
        assert explain(lines(final)[0]).recomputed_equal


def test_volume_and_packages_are_of_all_of_the_month() -> None:
    tenant, project = customer()
    volume, package = sold(None), sold(None)
    tiered(volume, "volume", [10 * HOUR], [EURO // 2])
    tiered(package, "package", [10 * HOUR], [8 * EURO])
    ran(project, volume, START, 12 * HOUR)
    ran(project, package, START, 25 * HOUR)
    final = closed(tenant)
    assert sorted(line.minor for line in lines(final)) == [600, 2100]
    checked(final)


def test_all_projects_of_a_tenant_count_together_and_nobody_else() -> None:
    kestrel, other = home("Kestrel"), customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [0])
    ran(kestrel.project, offering, START, 8 * HOUR)
    ran(kestrel.child("below"), offering, START + timedelta(hours=1), 8 * HOUR)
    ran(other[1], offering, START, 8 * HOUR)
    final = closed(kestrel.tenant)
    assert sorted(line.minor for line in lines(final)) == [200, 800]
    assert closed(other[0]).total == 800
    checked(final)


def test_what_a_quote_promised_is_outside_of_tiers() -> None:
    tenant, project = customer()
    offering = sold(None)
    version = tiered(offering, "graduated", [10 * HOUR], [0])
    lease = ran(project, offering, START, 10 * HOUR)
    promise(lease, version)
    ran(project, offering, START + timedelta(days=1), 10 * HOUR)
    final = closed(tenant)
    assert final.total == 2000
    assert carried(tenant) == []


def test_a_price_that_changes_in_the_month_goes_on_where_the_one_before_was() -> None:
    tenant, project = customer()
    offering = sold(None)
    middle = at("2026-11-02 08:00:00")
    tiered(offering, "graduated", [10 * HOUR], [0], valid=(at("2026-11-01 00:00:00"), middle))
    tiered(offering, "graduated", [10 * HOUR], [EURO], nano=2 * EURO, valid=(middle, None))
    ran(project, offering, START, 20 * HOUR)
    final = closed(tenant)
    assert [line.minor for line in lines(final)] == [800, 2 * 200 + 10 * 100]
    checked(final)


def test_a_tenants_own_price_comes_first_and_its_seconds_count_for_the_lists_tiers() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [0])
    with as_tenant(tenant.pk):
        card = RateCard.objects.create(name="own", tenant_id=tenant.pk)
        PriceVersion.objects.create(
            tenant_id=tenant.pk,
            rate_card=card,
            offering=offering,
            currency="EUR",
            valid=(START, START + timedelta(hours=8)),
            nano_per_hour=EURO // 2,
            created_at=START,
        )
    ran(project, offering, START, 20 * HOUR)
    final = closed(tenant)
    assert sorted(line.minor for line in lines(final)) == [200, 400]
    checked(final)


def test_late_seconds_count_where_they_are_carried() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [0])
    ran(project, offering, START, 10 * HOUR)
    first = closed(tenant)
    ran(project, offering, START + timedelta(days=2), 4 * HOUR)
    ran(project, offering, at("2026-12-01 00:00:00"), 8 * HOUR)
    rating.rate(now=at("2026-12-02 00:00:00"))
    drafts.refresh(tenant, now=at("2026-12-02 00:00:00"))
    late = invoices(tenant)[-1]
    assert (first.total, late.total) == (1000, 1000)
    checked(late)


def test_tiers_come_before_discounts() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "volume", [10 * HOUR], [EURO // 2])
    ran(project, offering, START, 20 * HOUR)
    given(tenant, percent_bp=1000)
    final = closed(tenant)
    assert final.total == 900
    assert [kind for kind, *_ in carried(tenant)] == ["tier", "percent"]
    checked(final)


def test_cutting_a_lease_with_ticks_changes_nothing() -> None:
    totals = []
    for ticks in (False, True):
        tenant, project = customer("Europe/Berlin")
        offering = sold(None)
        tiered(offering, "graduated", [10 * HOUR], [EURO // 3])
        ran(project, offering, START, 7 * HOUR)
        if ticks:
            ran(project, offering, START + timedelta(hours=8), 3 * HOUR)
            ran(project, offering, START + timedelta(hours=11), 4 * HOUR + 1)
        else:
            ran(project, offering, START + timedelta(hours=8), 7 * HOUR + 1)
        totals.append(closed(tenant).total)
    assert totals[0] == totals[1]


def test_b23_postgresql_takes_no_tiers_that_do_not_tile_or_cost_more_than_the_price() -> None:
    offering = sold(None)
    for model, starts, prices in (
        ("flat", [1], [1]),
        ("graduated", None, None),
        ("graduated", [], []),
        ("graduated", [0], [1]),
        ("graduated", [5, 5], [1, 1]),
        ("graduated", [6, 5], [1, 1]),
        ("graduated", [5], [1, 1]),
        ("graduated", [5], [-1]),
        ("volume", [5], [EURO + 1]),
        ("volume", [None], [1]),
        ("volume", [5], [None]),
        ("package", [5, 6], [0, 0]),
        ("package", [HOUR], [EURO + 1]),
        ("tiered", [5], [1]),
    ):
        with pytest.raises(IntegrityError, match="tiers_tile"), transaction.atomic():
            tiered(offering, model, starts, prices)  # type: ignore[arg-type]
    made = tiered(offering, "graduated", [5], [1])
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        PriceVersion.objects.filter(pk=made.pk).update(tier_nano=[0])


def test_leases_that_run_on_are_reckoned_with_when_the_month_closes() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [0])
    runs(project, offering, at("2026-11-30 00:00:00"), seen_at=CLOSES)
    rating.rate(now=NOW)
    closing.close_due(now=CLOSES)
    final = invoices(tenant)[0]
    assert final.total == 1000
    checked(final)


def test_whoever_uses_nothing_in_tiers_is_not_reckoned(django_assert_num_queries: Any) -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, HOUR)
    drafted(tenant)
    with CaptureQueriesContext(connection) as before:
        drafts.refresh(tenant, now=NOW)
    tiered(other := sold(None), "graduated", [HOUR], [10**8])
    with django_assert_num_queries(len(before)):
        drafts.refresh(tenant, now=NOW)
    ran(project, other, START, 2 * HOUR)
    drafted(tenant)
    with as_tenant(tenant.pk):
        assert reckoning.any_terms(tenant.pk)
