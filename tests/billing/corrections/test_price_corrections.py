"""Price corrections of final and open months across tenants."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import Correction, CreditNote, Invoice, PriceVersion, TenantCorrection
from billing.services.documents import invoice_bundles
from billing.services.invoicing.corrections import correction_bookings
from billing.services.invoicing.corrections.correction_approvals import OwnProposal
from billing.verify import verify
from broker.models import Lease, Offering
from ports import outbox
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.corrections.correction_setup import (
    ANNA,
    BEGUN,
    CLEO,
    NOW,
    OCTOBER,
    approve_correction,
    close_period,
    corrected_charges,
    create_ten_hour_lease,
    invoiced_seconds,
    propose_correction,
    propose_price,
    rate_leases,
)
from tests.billing.corrections.test_lease_corrections import (
    conservation_differences,
    counterexamples,
    verifier_differences,
)
from tests.billing.histories import HOUR, add_ended_lease, add_quote, create_customer, utc
from tests.billing.payments.payable_invoices import process_payment, reload_invoice, request_payment

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
LATER = utc("2026-12-01 00:05:00")


def create_two_tenants() -> tuple[PriceVersion, Tenant, Tenant]:
    """Return a price and two tenants that each used ten hours at it."""
    first, _, lease = create_ten_hour_lease()
    second, project = create_customer()
    offering = Offering.objects.get(pk=lease.offering_id)
    add_ended_lease(project, offering, BEGUN, 10 * HOUR)
    rate_leases(second)
    return offering.price_versions.get(), first, second


def tenant_results(correction: Correction) -> dict[str, tuple[str, int]]:
    with staff_scope():
        found = TenantCorrection.objects.filter(correction=correction)
        return {each.tenant_id: (each.status, each.minor) for each in found}


def book_and_reload(correction: Correction, *, now: Any = NOW) -> Correction:
    correction_bookings.book_approved_corrections(now=now)
    return Correction.objects.get(pk=correction.pk)


def test_a_price_correction_credits_final_months_and_recharges_open_ones() -> None:
    version, final, open_ = create_two_tenants()
    invoice = close_period(final)
    correction = propose_price(version, 150, 2, 8, now=NOW)
    assert tenant_results(correction) == {final.pk: ("waiting", -300), open_.pk: ("waiting", -300)}
    assert correction.minor == 600
    done = (
        approve_correction(approve_first(correction), by=CLEO, now=NOW)
        if correction.needs_two
        else approve_correction(correction, now=NOW)
    )
    assert done.status == "approved"
    assert book_and_reload(done).status == "booked"
    assert reload_invoice(invoice).due == 1700
    with tenant_scope(final.pk):
        (note,) = CreditNote.objects.all()
        assert (note.total, note.correction_id) == (300, correction.pk)
    assert corrected_charges(open_) == [("adjust", -6 * HOUR, -1200), ("adjust", 6 * HOUR, 900)]
    assert invoiced_seconds(open_) == [(10 * HOUR, 0, 1700)]
    version.refresh_from_db()
    assert version.nano_per_hour == 2 * 10**9
    assert verifier_differences(invoice) == []
    assert verifier_differences(close_period(open_)) == []
    assert conservation_differences() == (0, 0, 0, 0)
    for name in (
        "corrected as approved",
        "charges match usage",
        "no charge without usage",
        "quotes honoured",
    ):
        assert counterexamples(name) == []


def approve_first(correction: Correction) -> Correction:
    return approve_correction(correction, now=NOW)


def test_rating_and_booking_again_after_a_price_correction_writes_nothing() -> None:
    version, final, open_ = create_two_tenants()
    close_period(final)
    book_and_reload(approve_correction(propose_price(version, 150, now=NOW), now=NOW))
    before = (corrected_charges(final), corrected_charges(open_), invoiced_seconds(final), invoiced_seconds(open_))
    for tenant in (final, open_):
        rate_leases(tenant, now=NOW)
    correction_bookings.book_approved_corrections(now=NOW)
    assert (
        corrected_charges(final),
        corrected_charges(open_),
        invoiced_seconds(final),
        invoiced_seconds(open_),
    ) == before
    with pytest.raises(InvalidValue, match="nothing would change"):
        propose_price(version, 150, now=NOW)


def test_the_difference_of_an_underpriced_month_is_on_the_next_invoice() -> None:
    version, final, _ = create_two_tenants()
    invoice = close_period(final)
    book_and_reload(approve_correction(propose_price(version, 250, 0, 4, now=NOW), now=NOW))
    assert reload_invoice(invoice).due == 2000
    assert invoiced_seconds(final) == [(10 * HOUR, 0, 2000), (0, 0, 200)]
    november = close_period(final, "2026-11", now=LATER)
    assert (november.total, verifier_differences(november), verifier_differences(invoice)) == (200, [], [])


def test_a_booked_price_correction_can_be_corrected_again() -> None:
    version, _, open_ = create_two_tenants()
    book_and_reload(approve_correction(propose_price(version, 150, 2, 8)))
    book_and_reload(approve_correction(propose_price(version, 180, 4, 10)))
    assert invoiced_seconds(open_) == [(10 * HOUR, 0, 2000 - 2 * 50 - 6 * 20)]
    assert verifier_differences(close_period(open_)) == []


def test_seconds_are_credited_at_their_corrected_price_and_not_repriced_again() -> None:
    tenant, _, lease = create_ten_hour_lease()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    book_and_reload(approve_correction(propose_price(version, 150, 2, 8)))
    approve_correction(propose_correction(lease, 7, 9))
    assert invoiced_seconds(tenant) == [(8 * HOUR, 0, 2000 - 300 - 150 - 200)]
    book_and_reload(approve_correction(propose_price(version, 100, 0, 10)))
    assert invoiced_seconds(tenant) == [(8 * HOUR, 0, 800)]
    assert verifier_differences(close_period(tenant)) == []


def test_quoted_usage_is_repriced_only_below_its_quote() -> None:
    tenant, project, lease = create_ten_hour_lease()
    offering = Offering.objects.get(pk=lease.offering_id)
    version = offering.price_versions.get()
    with tenant_scope(tenant.pk):
        quoted = add_ended_lease(project, offering, BEGUN + timedelta(hours=1), HOUR)
        add_quote(Lease.objects.get(pk=quoted.pk), version)
    rate_leases(tenant)
    book_and_reload(approve_correction(propose_price(version, 300)))
    assert invoiced_seconds(tenant) == [(11 * HOUR, 0, 3200)]
    book_and_reload(approve_correction(propose_price(version, 100)))
    assert invoiced_seconds(tenant) == [(11 * HOUR, 0, 1100)]
    assert verifier_differences(close_period(tenant)) == []


def test_a_worker_killed_between_two_tenants_continues_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    version, first, second = create_two_tenants()
    correction = approve_correction(propose_price(version, 150))

    class Killed(BaseException):
        pass

    write, done = correction_bookings._write, []

    def dies(*args: Any) -> None:
        write(*args)
        done.append(args)
        if len(done) == 2:
            raise Killed

    monkeypatch.setattr(correction_bookings, "_write", dies)
    with pytest.raises(Killed):
        correction_bookings.book_approved_corrections(now=OCTOBER)
    monkeypatch.undo()
    assert sorted(status for status, _ in tenant_results(correction).values()) == ["booked", "waiting"]
    assert book_and_reload(correction, now=OCTOBER).status == "booked"
    assert (invoiced_seconds(first), invoiced_seconds(second)) == ([(10 * HOUR, 0, 1500)],) * 2
    assert correction_bookings.book_approved_corrections(now=OCTOBER) == 0


def test_a_tenant_whose_charges_changed_is_skipped_as_outdated() -> None:
    version, first, second = create_two_tenants()
    correction = propose_price(version, 150)
    with tenant_scope(first.pk):
        lease = Lease.objects.get(tenant=first)
    approve_correction(propose_correction(lease, 2, 5))
    assert book_and_reload(approve_correction(correction), now=OCTOBER).status == "booked"
    assert tenant_results(correction) == {first.pk: ("outdated", -500), second.pk: ("booked", -500)}
    assert invoiced_seconds(first) == [(7 * HOUR, 0, 1400)]
    book_and_reload(approve_correction(propose_price(version, 150)))
    assert invoiced_seconds(first) == [(7 * HOUR, 0, 1050)]


def test_a_payment_in_progress_delays_the_correction_of_its_own_tenant_only() -> None:
    version, first, second = create_two_tenants()
    invoice = close_period(first)
    correction = approve_correction(propose_price(version, 150, now=NOW), now=NOW)
    payment = request_payment(invoice)
    assert book_and_reload(correction).status == "approved"
    assert {status for status, _ in tenant_results(correction).values()} == {"waiting", "booked"}
    with tenant_scope(first.pk):
        assert "in progress" in TenantCorrection.objects.get(correction=correction).last_error
    process_payment(payment)
    assert book_and_reload(correction).status == "booked"
    assert invoiced_seconds(second) == [(10 * HOUR, 0, 1500)]


def test_price_corrections_above_the_threshold_need_two_approvals(settings: Any) -> None:
    settings.CORRECTION_APPROVAL_THRESHOLD = 10
    version, *_ = create_two_tenants()
    correction = propose_price(version, 150)
    enqueued: list[str] = []
    with outbox.captured(lambda task, *_: enqueued.append(task)):
        assert approve_correction(correction).status == "proposed"
        with pytest.raises(OwnProposal):
            approve_correction(correction, by=ANNA)
        assert approve_correction(correction, by=CLEO).status == "approved"
    assert enqueued == ["billing.book_corrections"]


def test_a_price_correction_of_an_unused_period_is_refused() -> None:
    version, *_ = create_two_tenants()
    with pytest.raises(InvalidValue, match="Nothing in this period is charged"):
        propose_price(version, 150, 11, 12)
    with pytest.raises(InvalidValue):
        propose_price(version, -1)


def test_an_invoice_bundle_contains_its_price_corrections() -> None:
    version, _, open_ = create_two_tenants()
    book_and_reload(approve_correction(propose_price(version, 150)))
    with tenant_scope(open_.pk):
        raw = invoice_bundles.build_bundle(Invoice.objects.select_related("period").get(tenant=open_)).whole(most=10**7)
    assert raw is not None
    assert verify.check(raw).differences == []
    assert b'"instead":"1500000000"' in raw
