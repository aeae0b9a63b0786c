"""Free starts of spot leases that are reclaimed soon."""

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, transaction

from billing.domain import rating as oracle
from billing.models import BillingPeriod, PriceVersion, RatedCharge
from billing.services.catalogue import tenant_prices
from billing.services.documents import invoice_bundles
from billing.services.funds.costs.max_costs import lease_usages
from billing.services.invoicing import drafts
from billing.services.ledger import invariant_checks
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating, spend
from billing.services.reports import conservation, line_explanations
from billing.verify import verify
from broker.models import Lease, Offering
from tenants.models import Project, Tenant
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    charges_of,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
START = utc("2026-11-20 00:00:00")


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return create_customer()


@pytest.fixture
def spot(db: None) -> Offering:
    return create_priced_offering(36 * EURO, price_class="spot")  # a cent a second


def create_reclaimed_lease(project: Project, offering: Offering, *after: int, start: datetime = START) -> Lease:
    """Create a lease with ticks that is reclaimed at its last second."""
    steps = [(start, S.REQUESTED), (start, S.ACTIVE)]
    steps += [(start + timedelta(seconds=each), S.ACTIVE) for each in after[:-1]]
    end = start + timedelta(seconds=after[-1])
    steps += [(end, S.RELEASING), (end, S.RELEASED)]
    lease = add_lease_history(project, offering, steps, taken=len(steps) - 2, quantity=2)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(ended_at=end)
    return lease


def charge_kinds(tenant: Tenant) -> list[tuple[str, int, int]]:
    return sorted((c.kind, c.seq, c.unit_seconds) for c in charges_of(tenant))


def billed_lines(tenant: Tenant) -> list[tuple[int, int, int]]:
    """Return verified unit-seconds, credits and amounts of every line."""
    drafts.refresh_drafts(tenant, now=NOW)
    found = []
    for invoice in invoices_of(tenant):
        with tenant_scope(tenant.pk):
            report = verify.check(b"".join(invoice_bundles.build_bundle(invoice)))
            assert (report.differences, report.total) == ([], invoice.total)
            for line in invoice.lines.select_related("invoice"):
                assert line_explanations.explain_invoice_line(line).recomputed_equal
        found += [(line.unit_seconds, line.given_back_s, line.minor) for line in invoice_lines(invoice)]
    return found


def test_a_spot_lease_reclaimed_within_the_free_start_costs_nothing(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    lease = create_reclaimed_lease(project, spot, 119)
    lease_rating.rate_all_leases(now=NOW)
    assert charge_kinds(tenant) == [("adjust", 1, -238), ("usage", 1, 238)]
    assert billed_lines(tenant) == [(0, 238, 0)]
    assert lease_rating.rate_all_leases(now=NOW, whole=True).written == 0
    with tenant_scope(tenant.pk):
        assert spend.costs_of([lease.pk], now=NOW)[lease.pk].minor == 0
        assert spend.spend_between(tenant, START, NOW) == 0
        used = lease_usages([lease.pk])[lease.pk]
    assert (used.used, used.charged, sum(used.by_month.values())) == (238, 238, 0)
    Offering.objects.update(state="draft")  # of no real shape
    kept = conservation.check_conservation(first=START, last=NOW)
    assert (kept.charged_minus_active, kept.lines_minus_charges, kept.wrong_totals) == (0, 0, 0)
    with staff_scope():
        held = {proof.name: proof.holds for proof in invariant_checks.check_invariants(now=START + timedelta(days=1))}
    assert held["refunds match"]
    assert held["free starts refunded"]
    assert held["charges match usage"]


@pytest.mark.parametrize("seconds", [120, HOUR])
def test_a_lease_beyond_the_free_start_is_charged_from_its_first_second(
    kestrel: tuple[Tenant, Project], spot: Offering, seconds: int
) -> None:
    create_reclaimed_lease(kestrel[1], spot, seconds)
    lease_rating.rate_all_leases(now=NOW)
    assert billed_lines(kestrel[0]) == [(2 * seconds, 0, 2 * seconds)]


def test_a_spot_lease_ended_by_its_tenant_is_charged(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    add_ended_lease(kestrel[1], spot, START, 60)
    lease_rating.rate_all_leases(now=NOW)
    assert billed_lines(kestrel[0]) == [(60, 0, 60)]


def test_a_reclaimed_on_demand_lease_has_no_free_start(kestrel: tuple[Tenant, Project]) -> None:
    create_reclaimed_lease(kestrel[1], create_priced_offering(36 * EURO), 60)
    lease_rating.rate_all_leases(now=NOW)
    assert billed_lines(kestrel[0]) == [(120, 0, 120)]


def test_a_line_keeps_its_other_seconds_and_shows_the_reversed_ones(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    add_ended_lease(project, spot, START, 100)
    lease = create_reclaimed_lease(project, spot, 60)
    lease_rating.rate_all_leases(now=NOW)
    assert billed_lines(tenant) == [(100, 120, 100)]
    (invoice,) = invoices_of(tenant)
    with tenant_scope(tenant.pk):
        explained = line_explanations.explain_invoice_line(invoice.lines.select_related("invoice").get())
    (use,) = [each for each in explained.leases if each.lease == lease.pk]
    assert [(w.seconds, w.charged, w.why) for w in use.windows] == [(60, False, line_explanations.REVERSED_REASON)]


def test_a_run_split_by_metering_ticks_counts_as_one_run(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    """Ticks cut it anywhere, also when it is reclaimed."""
    create_reclaimed_lease(kestrel[1], spot, 50, 100)
    create_reclaimed_lease(kestrel[1], spot, 50, 50)
    create_reclaimed_lease(kestrel[1], spot, 100, 130)
    lease_rating.rate_all_leases(now=NOW)
    assert billed_lines(kestrel[0]) == [(260, 300, 260)]
    assert lease_rating.rate_all_leases(now=NOW, whole=True).written == 0


def test_a_free_start_charged_earlier_is_refunded_on_the_same_invoice(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    lease = create_reclaimed_lease(project, spot, 50, 100)
    early = rate_first_interval(tenant, lease, START)
    assert charge_kinds(tenant) == [("usage", 1, 100)]
    lease_rating.rate_all_leases(now=NOW, whole=True)
    assert charge_kinds(tenant) == [("adjust", 1, -100), ("adjust", 2, -100), ("usage", 1, 100), ("usage", 2, 100)]
    assert early.billed_period_id == charges_of(tenant)[0].billed_period_id
    assert billed_lines(tenant) == [(0, 200, 0)]


def rate_first_interval(tenant: Tenant, lease: Lease, start: datetime) -> RatedCharge:
    """Rate only the first interval, as an earlier run does."""
    with transaction.atomic():
        lease_rating.rate_all_leases(now=NOW)
        (first,) = [c for c in charges_of(tenant) if (c.lease_id, c.seq, c.kind) == (lease.pk, 1, "usage")]
        transaction.set_rollback(True)
    with tenant_scope(tenant.pk):
        billing_periods.ensure_periods(tenant, since=start, until=NOW)
        first.period_id = first.billed_period_id = billing_periods.current_period(tenant, now=start).pk
        first.save(force_insert=True)
    return first


def test_a_free_start_across_a_closed_month_leaves_the_final_invoice_unchanged(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    """Reclaimed after the invoice was final: a credit note returns it."""
    tenant, project = kestrel
    start = utc("2026-10-31 23:59:30")
    first = rate_first_interval(tenant, create_reclaimed_lease(project, spot, 30, 60, start=start), start)
    drafts.refresh_drafts(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        BillingPeriod.objects.filter(label="2026-10").update(status="closed")
    lease_rating.rate_all_leases(now=NOW, whole=True)
    assert first.seq == 1
    assert charge_kinds(tenant) == [("adjust", 2, -60), ("usage", 1, 60), ("usage", 2, 60)]
    assert billed_lines(tenant) == [(60, 0, 60), (0, 60, 0)]
    with staff_scope():
        (owed,) = [
            proof
            for proof in invariant_checks.check_invariants(now=start + timedelta(days=1))
            if proof.name == "free starts refunded"
        ]
    assert (owed.holds, owed.found) == (False, 1), "operators are told"


def test_tenant_prices_and_quotes_also_have_a_free_start(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    tenant, project = kestrel
    add_quote(create_reclaimed_lease(project, spot, 60), spot.price_versions.get())
    tenant_prices.set_tenant_price(
        tenant=tenant, offering=spot, nano_per_hour=50 * EURO, since=START, actor=OPERATOR, now=START
    )
    create_reclaimed_lease(project, spot, 60)
    lease_rating.rate_all_leases(now=NOW)
    assert sorted(billed_lines(tenant)) == [(0, 120, 0), (0, 120, 0)]


def test_the_free_start_of_a_price_version_cannot_be_changed(spot: Offering) -> None:
    version = spot.price_versions.get()
    assert version.free_start_s == 120
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        PriceVersion.objects.filter(pk=version.pk).update(free_start_s=60)


def test_only_adjustment_charges_have_negative_seconds(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    tenant, project = kestrel
    create_reclaimed_lease(project, spot, 60)
    lease_rating.rate_all_leases(now=NOW)
    row = charges_of(tenant)[0]
    for kind, seconds in (("adjust", 1), ("usage", -1), ("other", 1)):
        row.kind, row.unit_seconds, row.part = kind, seconds, 7
        with (
            tenant_scope(tenant.pk),
            pytest.raises(DatabaseError, match="charge_has_seconds"),
            transaction.atomic(),
        ):
            row.save(force_insert=True)


def test_the_oracle_measures_a_run_from_its_last_start() -> None:
    """Stopped in between, it starts anew: only the second start was taken back."""
    steps = [
        oracle.RatedTransition("lse", seq, START + timedelta(seconds=second), state, "off", 1, "spot", was)  # type: ignore[arg-type]
        for seq, (second, state, was) in enumerate(
            [(0, S.ACTIVE, False), (50, S.STOPPED, False), (60, S.ACTIVE, False), (90, S.RELEASED, True)]
        )
    ]
    assert [segment.taken_after_s for segment in oracle.billable_intervals(steps)] == [None, 30]
