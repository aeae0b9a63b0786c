"""Spend by period, project, day, tag and requester."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from billing.services.rating import lease_rating, spend
from broker.models import Lease
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    S,
    add_ended_lease,
    add_lease_history,
    add_running_lease,
    create_customer,
    create_priced_offering,
    exact_spend,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
MONTH = utc("2026-11-01 00:00:00")


def test_spend_of_ended_and_running_leases_is_equal_before_and_after_rating() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, NOW - timedelta(hours=5), HOUR, quantity=2)
    add_running_lease(project, offering, NOW - timedelta(hours=1))
    sums = []
    for _ in range(2):
        with tenant_scope(tenant.pk):
            sums.append(exact_spend(MONTH, NOW))
        lease_rating.rate_all_leases(now=NOW)
    assert sums == [3 * HOUR * EURO] * 2


def test_only_usage_inside_the_period_counts_as_spend() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), MONTH - timedelta(hours=1), 2 * HOUR)
    for _ in range(2):
        with tenant_scope(tenant.pk):
            assert exact_spend(MONTH, NOW) == HOUR * EURO
            assert exact_spend(MONTH, MONTH + timedelta(seconds=10)) == 10 * EURO
        lease_rating.rate_all_leases(now=NOW)


def test_project_spend_includes_only_the_given_projects() -> None:
    tenant, root = create_customer()
    offering = create_priced_offering(EURO)
    with tenant_scope(tenant.pk):
        child = projects.create(parent=root, name="child", actor=SYSTEM, now=MONTH)
    add_ended_lease(root, offering, MONTH, HOUR)
    add_ended_lease(child, offering, MONTH, 2 * HOUR)
    add_running_lease(child, offering, NOW - timedelta(seconds=1))
    with tenant_scope(tenant.pk):
        assert exact_spend(MONTH, NOW, [child.pk]) == (2 * HOUR + 1) * EURO
        assert exact_spend(MONTH, NOW, []) == 0
        assert spend.hourly_spend([child.pk], tenant, now=NOW) == EURO
        assert spend.hourly_spend([root.pk], tenant, now=NOW) == 0


def test_spend_of_another_tenant_is_not_included() -> None:
    tenant, _ = create_customer()
    _, elsewhere = create_customer()
    add_running_lease(elsewhere, create_priced_offering(EURO), MONTH)
    with tenant_scope(tenant.pk):
        assert exact_spend(MONTH, NOW) == 0
        assert spend.hourly_spend(None, tenant, now=NOW) == 0


def test_the_burn_rate_is_the_hourly_cost_of_all_active_units() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(EURO), MONTH, quantity=3)
    add_running_lease(project, create_priced_offering(2 * EURO), MONTH)
    add_lease_history(project, create_priced_offering(9 * EURO), [(MONTH, S.PROVISIONING)])
    with tenant_scope(tenant.pk):
        assert spend.hourly_spend(None, tenant, now=NOW) == 5 * EURO


def test_the_cost_of_many_leases_needs_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    old = [add_ended_lease(project, offering, MONTH, HOUR, quantity=2) for _ in range(3)]
    lease_rating.rate_all_leases(now=NOW)
    live = add_running_lease(project, offering, NOW - timedelta(seconds=30))
    waiting = add_lease_history(project, offering, [(NOW, S.QUEUED)])
    with tenant_scope(tenant.pk), django_assert_num_queries(1):
        found = spend.costs_of([*(lease.pk for lease in old), live.pk, waiting.pk], now=NOW)
    assert found[live.pk] == spend.LeaseCost("EUR", 30, 30, 30 * EURO, NOW)
    assert found[old[0].pk] == spend.LeaseCost("EUR", HOUR, 2 * HOUR, 2 * HOUR * EURO, MONTH + timedelta(hours=1))
    assert found[old[0].pk].minor == 200
    assert waiting.pk not in found
    assert spend.LeaseCost.nothing("EUR").minor == 0


def test_a_lease_across_a_price_change_costs_the_sum_of_both() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    lease = add_running_lease(project, offering, NOW - timedelta(hours=2))
    set_price(offering, 3 * EURO, since=NOW - timedelta(hours=1))
    with tenant_scope(tenant.pk):
        assert spend.costs_of([lease.pk], now=NOW)[lease.pk].exact_num == 4 * HOUR * EURO


@pytest.mark.parametrize("rated", [False, True])
def test_daily_usage_is_split_at_local_midnight(rated: bool) -> None:
    tenant, project = create_customer("America/New_York")
    offering = create_priced_offering(EURO)
    # The clocks go back on 1 November 2026: that day has 25 hours.
    start = utc("2026-10-31 04:00:00")
    add_ended_lease(project, offering, start, 3 * 24 * HOUR)
    if rated:
        lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(tenant.pk):
        found = spend.daily_usage(tenant, start, NOW, group="offering")
    assert [(each.day, each.unit_seconds // HOUR, each.exact_num) for each in found] == [
        (utc("2026-10-31 04:00:00"), 24, 24 * HOUR * EURO),
        (utc("2026-11-01 04:00:00"), 25, 25 * HOUR * EURO),
        (utc("2026-11-02 05:00:00"), 23, 23 * HOUR * EURO),
    ]
    assert {each.key for each in found} == {offering.pk}


def test_daily_usage_is_grouped_by_project_or_lease() -> None:
    tenant, root = create_customer()
    offering = create_priced_offering(EURO)
    lease = add_ended_lease(root, offering, MONTH, HOUR)
    with tenant_scope(tenant.pk):
        assert [u.key for u in spend.daily_usage(tenant, MONTH, NOW, group="project")] == [root.pk]
        assert [u.key for u in spend.daily_usage(tenant, MONTH, NOW, group="lease", projects=[root.pk])] == [lease.pk]
        with pytest.raises(ValueError, match="not by 'colour'"):
            spend.daily_usage(tenant, MONTH, NOW, group="colour")


@settings(max_examples=40, deadline=None)
@given(
    zone=st.sampled_from(["UTC", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]),
    hours=st.integers(1, 2000),
)
def test_local_days_cover_any_period_without_gap_or_overlap(zone: str, hours: int) -> None:
    since: datetime = utc("2026-03-01 13:07:00")
    until = since + timedelta(hours=hours)
    begins, ends = spend.local_days(zone, since, until)
    assert begins[0] <= since
    assert ends[-1] >= until
    assert begins[1:] == ends[:-1]


def test_spend_per_line_equals_the_future_draft() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, MONTH, HOUR)
    add_running_lease(project, offering, NOW - timedelta(seconds=30), quantity=2)
    with tenant_scope(tenant.pk):
        (line,) = spend.spend_lines([MONTH, NOW], until=NOW)
    assert (line.project, line.offering) == (project.pk, offering.pk)
    assert (line.unit_seconds, line.exact_num) == (HOUR + 60, (HOUR + 60) * EURO)


def test_spend_is_grouped_by_tag_with_untagged_usage_apart() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    for n, tags in enumerate(({"team": "fold", "run": "7"}, {"team": "dock"}, {})):
        lease = add_ended_lease(project, offering, MONTH + timedelta(hours=3 * n), HOUR)
        with tenant_scope(tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(tags=tags)
    with tenant_scope(tenant.pk):
        assert spend.tag_names(None) == spend.tag_names([project.pk]) == ["team", "run"]
        assert spend.tag_names(["prj_elsewhere"]) == []
        cut = spend.spend_lines([MONTH, NOW], until=NOW, cut="tag", tag="team")
        assert [(line.part, line.exact_num) for line in cut] == [(value, HOUR * EURO) for value in ("", "dock", "fold")]
        usage = spend.daily_usage(tenant, MONTH, NOW, group="tag", tag="run")
        assert {each.key: each.unit_seconds for each in usage} == {"": 2 * HOUR, "7": HOUR}


def test_spend_by_requester_adds_up_to_the_total() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    for n, who in enumerate(("usr_ada", "usr_bob", "")):
        lease = add_ended_lease(project, offering, MONTH + timedelta(hours=3 * n), HOUR)
        with tenant_scope(tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(requested_by=who)
    for _ in range(2):
        with tenant_scope(tenant.pk):
            cut = spend.spend_lines([MONTH, NOW], until=NOW, cut="user")
            assert [(line.part, line.exact_num) for line in cut] == [
                (who, HOUR * EURO) for who in ("", "usr_ada", "usr_bob")
            ]
            (whole,) = spend.spend_lines([MONTH, NOW], until=NOW)
            assert (whole.part, whole.exact_num) == ("", 3 * HOUR * EURO)
            usage = spend.daily_usage(tenant, MONTH, NOW, group="user")
            assert {each.key: each.unit_seconds for each in usage} == dict.fromkeys(("", "usr_ada", "usr_bob"), HOUR)
        lease_rating.rate_all_leases(now=NOW)
