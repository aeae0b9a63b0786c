"""Leases that cite a quote: never dearer, and under every agreement like other leases."""

import json
from datetime import timedelta

import pytest

from billing.models import Invoice, PriceVersion
from billing.services.adjustments import adjustment_facts, month_amounts
from billing.services.catalogue import tenant_prices
from billing.services.documents import invoice_bundles
from billing.services.funds.costs.max_costs import NO_USAGE, MaxCost
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports.line_explanations import explain_invoice_line
from broker.models import Lease
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import (
    START,
    close_and_get_invoice,
    create_discount,
    line_amounts,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.agreements.test_commitments import NOVEMBER, create_commitment_terms
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoice_lines,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
MONTH = 30 * 24 * HOUR
QUOTED = pytest.mark.parametrize("quoted", [False, True])


def create_reference_month(*, quoted: bool) -> Invoice:
    """Close a month with a committed and a tiered offering, each used by one lease."""
    tenant, project = create_customer()
    committed, tiered = create_priced_offering(36 * EURO // 10), create_priced_offering(None)
    create_commitment_terms(tenant, committed, 1, 18 * EURO // 10, since=NOVEMBER)
    set_tiered_price(tiered, "graduated", [10 * HOUR], [EURO // 2])
    for offering, seconds in ((committed, MONTH), (tiered, 100 * HOUR)):
        lease = add_ended_lease(project, offering, NOVEMBER, seconds)
        if quoted:
            add_quote(lease, offering.price_versions.get())
    return close_and_get_invoice(tenant)


@QUOTED
def test_commitments_and_tiers_apply_with_and_without_a_quote(quoted: bool) -> None:
    # 720 h at the committed 1.80; then 10 h at 1.00 and 90 h at 0.50.
    final = create_reference_month(quoted=quoted)
    assert final.total == 1351_00
    verify_invoice(final)


@QUOTED
def test_discounts_apply_to_what_tiers_left_of_quoted_usage(quoted: bool) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    price = set_tiered_price(offering, "volume", [5 * HOUR], [EURO // 2])
    lease = add_ended_lease(project, offering, START, 10 * HOUR)
    if quoted:
        add_quote(lease, price)
    create_discount(tenant, percent_bp=1000)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 450)]
    verify_invoice(final)


def test_a_lower_list_price_replaces_a_quoted_one_and_a_higher_does_not() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_ended_lease(project, offering, START, 40 * HOUR)
    add_quote(lease, offering.price_versions.get())
    for hours, nano in ((10, 3 * EURO), (20, EURO), (30, 4 * EURO)):
        set_price(offering, nano, since=START + timedelta(hours=hours))
    final = close_and_get_invoice(tenant)
    assert sorted(minor for _, minor in line_amounts(final)) == [10_00, 60_00]
    verify_invoice(final)


def test_an_own_price_below_a_quote_is_charged() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_ended_lease(project, offering, START, 4 * HOUR)
    add_quote(lease, offering.price_versions.get())
    hour = START + timedelta(hours=1)
    tenant_prices.set_tenant_price(
        tenant=tenant,
        offering=offering,
        nano_per_hour=EURO,
        since=hour,
        until=hour + timedelta(hours=1),
        actor=OPERATOR,
        now=START,
    )
    final = close_and_get_invoice(tenant)
    assert sorted(minor for _, minor in line_amounts(final)) == [100, 600]
    verify_invoice(final)


def test_a_quoted_price_fills_the_time_without_any_price() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    ended = START + timedelta(hours=1)
    price = set_tiered_price(offering, "graduated", [HOUR // 2], [EURO // 2], valid=(utc("2026-11-01 00:00:00"), ended))
    lease = add_ended_lease(project, offering, START, 2 * HOUR)
    add_quote(lease, price)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 50 + 25 + 50)]
    verify_invoice(final)


def test_a_quoted_lease_pays_the_lower_tiers_of_a_price_published_later() -> None:
    """The base price rises above the quote, its second tier lies below."""
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    lease = add_ended_lease(project, offering, START, 20 * HOUR)
    add_quote(lease, offering.price_versions.get())
    _publish_tiers(offering.price_versions.get())
    final = close_and_get_invoice(tenant)
    # 10 h at the quoted 1.00, although 1.20 is in force, and 10 h at 0.50.
    assert line_amounts(final) == [(offering.pk, 1000 + 500)]
    verify_invoice(final)


def _publish_tiers(running: PriceVersion) -> PriceVersion:
    since = START - timedelta(hours=1)
    running.valid = (running.valid.lower, since)
    running.save(update_fields=["valid"])
    return set_tiered_price(
        running.offering, "graduated", [10 * HOUR], [EURO // 2], nano=12 * EURO // 10, valid=(since, None)
    )


def test_a_commitment_covers_the_dearest_usage_first() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    quoted = add_ended_lease(project, offering, START, 10 * HOUR)
    add_quote(quoted, offering.price_versions.get())
    set_price(offering, 3 * EURO, since=START - timedelta(hours=1))
    add_ended_lease(project, offering, START, 10 * HOUR)
    create_commitment_terms(tenant, offering, 1, 2 * EURO, until=START + timedelta(hours=10))
    final = close_and_get_invoice(tenant)
    # The second lease costs 2.00 instead of 3.00; the quoted one costs 1.00 without the commitment.
    assert sum(minor for _, minor in line_amounts(final)) == 30_00
    verify_invoice(final)


def test_a_quote_from_before_ceilings_keeps_its_price_and_follows_agreements() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_ended_lease(project, offering, START, 20 * HOUR)
    add_quote(lease, offering.price_versions.get(), is_ceiling=False)
    set_price(offering, EURO, since=START + timedelta(hours=10))
    create_commitment_terms(tenant, offering, 1, EURO // 2, until=START + timedelta(hours=10))
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 500 + 2000)]
    verify_invoice(final)


@QUOTED
def test_a_lease_that_was_stopped_and_started_stays_under_its_agreements(quoted: bool) -> None:
    """The list price rises while it is stopped; the quote, if any, keeps its price."""
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    hours = [START + timedelta(hours=n) for n in (0, 4, 10, 16)]
    states = (S.ACTIVE, S.STOPPED, S.ACTIVE, S.RELEASED)
    lease = add_lease_history(project, offering, [(START, S.REQUESTED), *zip(hours, states, strict=True)])
    if quoted:
        add_quote(lease, offering.price_versions.get())
    set_price(offering, 3 * EURO, since=hours[1])
    create_commitment_terms(tenant, offering, 1, EURO, until=hours[2] + timedelta(hours=2))
    final = close_and_get_invoice(tenant)
    # Twelve committed hours, used or not; then four at 2.00 or 3.00.
    assert final.total == 12 * 100 + 4 * (200 if quoted else 300)
    verify_invoice(final)


def test_a_quoted_spot_lease_pays_each_lower_price() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO, price_class="spot")
    lease = add_ended_lease(project, offering, START, 3 * HOUR)
    add_quote(lease, offering.price_versions.get())
    for hour, nano in ((1, EURO), (2, 4 * EURO)):
        set_price(offering, nano, since=START + timedelta(hours=hour))
    final = close_and_get_invoice(tenant)
    assert final.total == 200 + 100 + 200
    verify_invoice(final)


def test_a_lease_extended_past_its_quoted_duration_stays_under_a_commitment() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_ended_lease(project, offering, START, 6 * HOUR)
    add_quote(lease, offering.price_versions.get())
    Lease.objects.filter(pk=lease.pk).update(max_duration_s=2 * lease.max_duration_s)
    create_commitment_terms(tenant, offering, 1, EURO, until=START + timedelta(hours=6))
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 600)]
    verify_invoice(final)


def test_what_is_held_for_a_quoted_lease_stays_at_the_quoted_price() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    lease = add_running_lease(project, offering, START)
    add_quote(lease, offering.price_versions.get())
    now = START + timedelta(hours=1)
    with tenant_scope(tenant.pk):
        lease.refresh_from_db()
        lease.active_at = START
        before = sum(MaxCost(tenant, [lease]).needed(lease, NO_USAGE, now=now).values())
    set_price(offering, EURO, since=now)
    with tenant_scope(tenant.pk):
        after = sum(MaxCost(tenant, [lease]).needed(lease, NO_USAGE, now=now).values())
    assert after == before == lease.max_duration_s * 2 * EURO


def test_an_invoice_of_the_first_rules_is_verified_and_explained_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was closed before quotes were ceilings, with late usage of October."""
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    price = set_tiered_price(
        offering, "graduated", [8 * HOUR], [EURO // 2], valid=(utc("2026-10-01 00:00:00"), None), nano=2 * EURO
    )
    add_ended_lease(project, offering, utc("2026-10-01 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-01 00:00:00"))
    assert close_month.close_period(tenant, "2026-10", now=utc("2026-11-01 00:10:00"))
    lease = add_ended_lease(project, offering, START, 10 * HOUR)
    add_quote(lease, price, is_ceiling=False)
    add_ended_lease(project, offering, START, 6 * HOUR)
    add_ended_lease(project, offering, utc("2026-10-02 00:00:00"), 3 * HOUR)
    create_commitment_terms(tenant, offering, 1, EURO, until=START + timedelta(hours=5))
    for module in (month_amounts, adjustment_facts):
        monkeypatch.setattr(module, "RULES", month_amounts.FIRST_RULES)
    final = close_and_get_invoice(tenant)
    monkeypatch.undo()
    # The quoted lease costs 10 × 2.00; of the other, 5 h are committed; it and 3 late hours stay in the first tier.
    assert line_amounts(final) == [(offering.pk, 2000 + 5 * 100 + 200 + 3 * 200)]
    verify_invoice(final)
    with tenant_scope(tenant.pk):
        assert json.loads(b"".join(invoice_bundles.build_bundle(final)))["version"] == 7
        assert all(explain_invoice_line(line).recomputed_equal for line in invoice_lines(final))
