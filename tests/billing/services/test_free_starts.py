"""What is taken back for others soon after its start is charged, and given back in the same breath."""

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, transaction

from billing.domain import rating as oracle
from billing.models import BillingPeriod, PriceVersion, RatedCharge
from billing.services import (
    bundles,
    conservation,
    drafts,
    explain,
    own_prices,
    periods,
    proofs,
    rating,
    spend,
)
from billing.services.funds.needs import uses
from billing.verify import verify
from broker.models import Lease, Offering
from tenants.models import Project, Tenant
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    S,
    at,
    charges,
    customer,
    invoices,
    lines,
    lived,
    promise,
    ran,
    sold,
)

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")
START = at("2026-11-20 00:00:00")


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return customer()


@pytest.fixture
def spot(db: None) -> Offering:
    return sold(36 * EURO, price_class="spot")  # a cent a second


def taken(project: Project, offering: Offering, *after: int, start: datetime = START) -> Lease:
    """Write a lease that was active from `start`, ticked at each of these seconds, and taken back at the last."""
    steps = [(start, S.REQUESTED), (start, S.ACTIVE)]
    steps += [(start + timedelta(seconds=each), S.ACTIVE) for each in after[:-1]]
    end = start + timedelta(seconds=after[-1])
    steps += [(end, S.RELEASING), (end, S.RELEASED)]
    lease = lived(project, offering, steps, taken=len(steps) - 2, quantity=2)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(ended_at=end)
    return lease


def kinds(tenant: Tenant) -> list[tuple[str, int, int]]:
    return sorted((c.kind, c.seq, c.unit_seconds) for c in charges(tenant))


def billed(tenant: Tenant) -> list[tuple[int, int, int]]:
    """Return unit-seconds, those given back and the amount of every line, checked by the program of others."""
    drafts.refresh(tenant, now=NOW)
    found = []
    for invoice in invoices(tenant):
        with as_tenant(tenant.pk):
            report = verify.check(b"".join(bundles.bundle(invoice)))
            assert (report.differences, report.total) == ([], invoice.total)
            for line in invoice.lines.select_related("invoice"):
                assert explain.explain(line).recomputed_equal
        found += [(line.unit_seconds, line.given_back_s, line.minor) for line in lines(invoice)]
    return found


def test_a_start_that_was_taken_back_in_time_costs_nothing(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    lease = taken(project, spot, 119)
    rating.rate(now=NOW)
    assert kinds(tenant) == [("adjust", 1, -238), ("usage", 1, 238)]
    assert billed(tenant) == [(0, 238, 0)]
    assert rating.rate(now=NOW, whole=True).written == 0
    with as_tenant(tenant.pk):
        assert spend.costs([lease.pk], now=NOW)[lease.pk].minor == 0
        assert spend.between(tenant, START, NOW) == 0
        used = uses([lease.pk])[lease.pk]
    assert (used.used, used.charged, sum(used.by_month.values())) == (238, 238, 0)
    Offering.objects.update(state="draft")  # of no real shape
    kept = conservation.over(first=START, last=NOW)
    assert (kept.charged_minus_active, kept.lines_minus_charges, kept.wrong_totals) == (0, 0, 0)
    with as_staff():
        held = {proof.name: proof.holds for proof in proofs.check(now=START + timedelta(days=1))}
    assert held["given back is charged"]
    assert held["free starts are given back"]
    assert held["charged is active"]


@pytest.mark.parametrize("seconds", [120, HOUR])
def test_what_ran_for_longer_is_charged_from_its_first_second(
    kestrel: tuple[Tenant, Project], spot: Offering, seconds: int
) -> None:
    taken(kestrel[1], spot, seconds)
    rating.rate(now=NOW)
    assert billed(kestrel[0]) == [(2 * seconds, 0, 2 * seconds)]


def test_what_its_tenant_ended_is_charged(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    ran(kestrel[1], spot, START, 60)
    rating.rate(now=NOW)
    assert billed(kestrel[0]) == [(60, 0, 60)]


def test_only_spot_is_free_at_its_start(kestrel: tuple[Tenant, Project]) -> None:
    taken(kestrel[1], sold(36 * EURO), 60)
    rating.rate(now=NOW)
    assert billed(kestrel[0]) == [(120, 0, 120)]


def test_other_seconds_on_the_line_stay_and_it_says_what_was_given_back(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    ran(project, spot, START, 100)
    lease = taken(project, spot, 60)
    rating.rate(now=NOW)
    assert billed(tenant) == [(100, 120, 100)]
    (invoice,) = invoices(tenant)
    with as_tenant(tenant.pk):
        told = explain.explain(invoice.lines.select_related("invoice").get())
    (use,) = [each for each in told.leases if each.lease == lease.pk]
    assert [(w.seconds, w.charged, w.why) for w in use.windows] == [(60, False, explain.GIVEN_BACK)]


def test_a_run_that_was_cut_is_looked_at_as_one(kestrel: tuple[Tenant, Project], spot: Offering) -> None:
    """Ticks cut it, also in the very second in which it is taken back, and before it was charged or after."""
    taken(kestrel[1], spot, 50, 100)
    taken(kestrel[1], spot, 50, 50)
    taken(kestrel[1], spot, 100, 130)
    rating.rate(now=NOW)
    assert billed(kestrel[0]) == [(260, 300, 260)]
    assert rating.rate(now=NOW, whole=True).written == 0


def test_what_was_charged_before_is_given_back_on_the_same_invoice(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    lease = taken(project, spot, 50, 100)
    early = half_rated(tenant, lease, START)
    assert kinds(tenant) == [("usage", 1, 100)]
    rating.rate(now=NOW, whole=True)
    assert kinds(tenant) == [("adjust", 1, -100), ("adjust", 2, -100), ("usage", 1, 100), ("usage", 2, 100)]
    assert early.billed_period_id == charges(tenant)[0].billed_period_id
    assert billed(tenant) == [(0, 200, 0)]


def half_rated(tenant: Tenant, lease: Lease, start: datetime) -> RatedCharge:
    """Charge the first stretch alone, as a run does that comes before the lease is taken back."""
    with transaction.atomic():
        rating.rate(now=NOW)
        (first,) = [c for c in charges(tenant) if (c.lease_id, c.seq, c.kind) == (lease.pk, 1, "usage")]
        transaction.set_rollback(True)
    with as_tenant(tenant.pk):
        periods.ensure(tenant, since=start, until=NOW)
        first.period_id = first.billed_period_id = periods.current(tenant, now=start).pk
        first.save(force_insert=True)
    return first


def test_a_month_that_was_closed_meanwhile_keeps_what_its_final_invoice_says(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    """Nobody knew yet that it would be taken back: what the final invoice has is given back by a credit note."""
    tenant, project = kestrel
    start = at("2026-10-31 23:59:30")
    first = half_rated(tenant, taken(project, spot, 30, 60, start=start), start)
    drafts.refresh(tenant, now=NOW)
    with as_tenant(tenant.pk):
        BillingPeriod.objects.filter(label="2026-10").update(status="closed")
    rating.rate(now=NOW, whole=True)
    assert first.seq == 1
    assert kinds(tenant) == [("adjust", 2, -60), ("usage", 1, 60), ("usage", 2, 60)]
    assert billed(tenant) == [(60, 0, 60), (0, 60, 0)]
    with as_staff():
        (owed,) = [
            proof
            for proof in proofs.check(now=start + timedelta(days=1))
            if proof.name == "free starts are given back"
        ]
    assert (owed.holds, owed.found) == (False, 1), "operators are told"


def test_a_price_of_its_own_and_a_quote_are_free_at_their_start_too(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    promise(taken(project, spot, 60), spot.price_versions.get())
    own_prices.agree(tenant=tenant, offering=spot, nano_per_hour=EURO, since=START, actor=OPERATOR, now=START)
    taken(project, spot, 60)
    rating.rate(now=NOW)
    assert sorted(billed(tenant)) == [(0, 120, 0), (0, 120, 0)]


def test_what_a_price_gives_back_never_changes(spot: Offering) -> None:
    version = spot.price_versions.get()
    assert version.free_start_s == 120
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        PriceVersion.objects.filter(pk=version.pk).update(free_start_s=60)


def test_seconds_that_are_given_back_are_less_than_nought(
    kestrel: tuple[Tenant, Project], spot: Offering
) -> None:
    tenant, project = kestrel
    taken(project, spot, 60)
    rating.rate(now=NOW)
    row = charges(tenant)[0]
    for kind, seconds in (("adjust", 1), ("usage", -1), ("other", 1)):
        row.kind, row.unit_seconds, row.part = kind, seconds, 7
        with (
            as_tenant(tenant.pk),
            pytest.raises(DatabaseError, match="charge_has_seconds"),
            transaction.atomic(),
        ):
            row.save(force_insert=True)


def test_a_run_of_the_oracle_is_as_long_as_it_was_active_in_one_go() -> None:
    """Stopped in between, it starts anew: only the second start was taken back."""
    steps = [
        oracle.Step("lse", seq, START + timedelta(seconds=second), state, "off", 1, "spot", was)  # type: ignore[arg-type]
        for seq, (second, state, was) in enumerate(
            [(0, S.ACTIVE, False), (50, S.STOPPED, False), (60, S.ACTIVE, False), (90, S.RELEASED, True)]
        )
    ]
    assert [segment.taken_after_s for segment in oracle.segments(steps)] == [None, 30]
