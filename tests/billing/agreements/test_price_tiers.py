"""Graduated, volume and package price tiers."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from billing.models import PriceVersion, RateCard
from billing.services.adjustments import month_adjustments
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports.line_explanations import explain_invoice_line
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import (
    CLOSES,
    NOW,
    START,
    adjustments_of,
    close_and_get_invoice,
    create_discount,
    create_draft,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    utc,
)
from tests.simulation import create_tenant

pytestmark = pytest.mark.django_db


def test_graduated_tiers_price_each_part_of_usage_at_its_tier() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR, 20 * HOUR], [EURO // 2, EURO // 4])
    add_ended_lease(project, offering, START, 6 * HOUR)
    add_ended_lease(project, offering, START + timedelta(days=1), 10 * HOUR, quantity=2)
    draft = create_draft(tenant)
    assert draft.total == 1000 + 500 + 150  # 10, 10 and 6 hours
    verify_invoice(draft)
    final = close_and_get_invoice(tenant)
    assert final.total == 1650
    assert adjustments_of(tenant) == [("tier", offering.pk, -(10 * EURO // 2 + 6 * EURO * 3 // 4) * HOUR)]
    verify_invoice(final)
    with tenant_scope(tenant.pk):
        assert explain_invoice_line(invoice_lines(final)[0]).recomputed_equal


def test_volume_and_package_tiers_price_the_whole_monthly_usage() -> None:
    tenant, project = create_customer()
    volume, package = create_priced_offering(None), create_priced_offering(None)
    set_tiered_price(volume, "volume", [10 * HOUR], [EURO // 2])
    set_tiered_price(package, "package", [10 * HOUR], [8 * EURO])
    add_ended_lease(project, volume, START, 12 * HOUR)
    add_ended_lease(project, package, START, 25 * HOUR)
    final = close_and_get_invoice(tenant)
    assert sorted(line.minor for line in invoice_lines(final)) == [600, 2100]
    verify_invoice(final)


def test_tiers_count_all_projects_of_one_tenant_and_no_other_tenant() -> None:
    kestrel, other = create_tenant("Kestrel"), create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [0])
    add_ended_lease(kestrel.project, offering, START, 8 * HOUR)
    add_ended_lease(kestrel.create_project("below"), offering, START + timedelta(hours=1), 8 * HOUR)
    add_ended_lease(other[1], offering, START, 8 * HOUR)
    final = close_and_get_invoice(kestrel.tenant)
    assert sorted(line.minor for line in invoice_lines(final)) == [200, 800]
    assert close_and_get_invoice(other[0]).total == 800
    verify_invoice(final)


def test_quoted_usage_is_priced_by_tiers_like_other_usage() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    version = set_tiered_price(offering, "graduated", [10 * HOUR], [0])
    lease = add_ended_lease(project, offering, START, 10 * HOUR)
    add_quote(lease, version)
    add_ended_lease(project, offering, START + timedelta(days=1), 10 * HOUR)
    final = close_and_get_invoice(tenant)
    assert final.total == 1000
    assert [kind for kind, _, _ in adjustments_of(tenant)] == ["tier"]
    verify_invoice(final)


def test_a_mid_month_price_change_keeps_the_usage_counted_for_tiers() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    middle = utc("2026-11-02 08:00:00")
    set_tiered_price(offering, "graduated", [10 * HOUR], [0], valid=(utc("2026-11-01 00:00:00"), middle))
    set_tiered_price(offering, "graduated", [10 * HOUR], [EURO], nano=2 * EURO, valid=(middle, None))
    add_ended_lease(project, offering, START, 20 * HOUR)
    final = close_and_get_invoice(tenant)
    assert [line.minor for line in invoice_lines(final)] == [800, 2 * 200 + 10 * 100]
    verify_invoice(final)


def test_usage_at_a_tenant_price_counts_towards_the_tiers_of_the_list_price() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [0])
    with tenant_scope(tenant.pk):
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
    add_ended_lease(project, offering, START, 20 * HOUR)
    final = close_and_get_invoice(tenant)
    assert sorted(line.minor for line in invoice_lines(final)) == [200, 400]
    verify_invoice(final)


def test_tiers_apply_before_discounts() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "volume", [10 * HOUR], [EURO // 2])
    add_ended_lease(project, offering, START, 20 * HOUR)
    create_discount(tenant, percent_bp=1000)
    final = close_and_get_invoice(tenant)
    assert final.total == 900
    assert [kind for kind, *_ in adjustments_of(tenant)] == ["tier", "percent"]
    verify_invoice(final)


def test_a_lease_split_into_two_is_priced_the_same_by_tiers() -> None:
    totals = []
    for ticks in (False, True):
        tenant, project = create_customer("Europe/Berlin")
        offering = create_priced_offering(None)
        set_tiered_price(offering, "graduated", [10 * HOUR], [EURO // 3])
        add_ended_lease(project, offering, START, 7 * HOUR)
        if ticks:
            add_ended_lease(project, offering, START + timedelta(hours=8), 3 * HOUR)
            add_ended_lease(project, offering, START + timedelta(hours=11), 4 * HOUR + 1)
        else:
            add_ended_lease(project, offering, START + timedelta(hours=8), 7 * HOUR + 1)
        totals.append(close_and_get_invoice(tenant).total)
    assert totals[0] == totals[1]


def test_b23_postgresql_refuses_tiers_out_of_order_or_above_the_base_price() -> None:
    offering = create_priced_offering(None)
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
            set_tiered_price(offering, model, starts, prices)  # type: ignore[arg-type]
    made = set_tiered_price(offering, "graduated", [5], [1])
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        PriceVersion.objects.filter(pk=made.pk).update(tier_nano=[0])


def test_running_leases_are_priced_by_tiers_at_month_close() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [0])
    add_running_lease(project, offering, utc("2026-11-30 00:00:00"), seen_at=CLOSES)
    lease_rating.rate_all_leases(now=NOW)
    close_month.close_due_months(now=CLOSES)
    final = invoices_of(tenant)[0]
    assert final.total == 1000
    verify_invoice(final)


def test_drafts_need_no_extra_query_without_usage_of_tiered_offerings(django_assert_num_queries: Any) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_draft(tenant)
    with CaptureQueriesContext(connection) as before:
        drafts.refresh_drafts(tenant, now=NOW)
    set_tiered_price(other := create_priced_offering(None), "graduated", [HOUR], [10**8])
    with django_assert_num_queries(len(before)):
        drafts.refresh_drafts(tenant, now=NOW)
    add_ended_lease(project, other, START, 2 * HOUR)
    create_draft(tenant)
    with tenant_scope(tenant.pk):
        assert month_adjustments.has_terms(tenant.pk)
