"""Edge cases of corrections: free starts, gaps, quotes and failures."""

from datetime import timedelta

import pytest
from django.db import DatabaseError

from billing.domain.corrections import ChargedInterval, uncharged_windows
from billing.models import Correction, Invoice, RatedCharge, TenantCorrection
from billing.services.invoicing.corrections import correction_bookings, correction_proposals
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Offering
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import verify_invoice
from tests.billing.corrections.correction_setup import (
    ANNA,
    BEGUN,
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
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_lease_history,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    set_price,
)

pytestmark = pytest.mark.django_db
S = LeaseState
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def create_running_lease(*, price_class: str) -> Lease:
    """Return a running lease whose first minute is charged."""
    tenant, project = create_customer()
    steps = [(BEGUN, S.REQUESTED), (BEGUN, S.PROVISIONING), (BEGUN, S.ACTIVE), (BEGUN + MINUTE, S.ACTIVE)]
    lease = add_lease_history(project, create_priced_offering(36 * EURO, price_class=price_class), steps)
    rate_leases(tenant, now=BEGUN + MINUTE)
    return lease


def test_a_start_that_may_still_become_free_cannot_be_corrected() -> None:
    lease = create_running_lease(price_class="spot")
    span = {"since": BEGUN, "until": BEGUN + MINUTE, "why": "x", "actor": ANNA}
    with pytest.raises(InvalidValue, match="started recently"):
        correction_proposals.propose_lease_correction(lease, charge=False, **span, now=BEGUN + 2 * MINUTE)  # type: ignore[arg-type]
    later = BEGUN + 8 * MINUTE
    assert correction_proposals.propose_lease_correction(lease, charge=False, **span, now=later).minor == 60  # type: ignore[arg-type]


def test_a_running_on_demand_lease_can_be_corrected() -> None:
    lease = create_running_lease(price_class="on_demand")
    span = {"since": BEGUN, "until": BEGUN + MINUTE, "why": "x", "actor": ANNA, "now": BEGUN + 2 * MINUTE}
    assert correction_proposals.propose_lease_correction(lease, charge=False, **span).minor == 60  # type: ignore[arg-type]


def test_a_running_lease_is_charged_to_the_end_of_the_corrected_time_first() -> None:
    tenant, project = create_customer()
    lease = add_running_lease(project, create_priced_offering(2 * EURO), BEGUN)
    now = BEGUN + timedelta(hours=10)
    proposed = propose_correction(lease, 2, 4, now=now)
    assert proposed.minor == 400
    with tenant_scope(tenant.pk):
        (charge,) = RatedCharge.objects.all()
        assert (charge.s, charge.e) == (BEGUN, BEGUN + timedelta(hours=4))
        assert Lease.objects.get(pk=lease.pk).state_since == BEGUN + timedelta(hours=4)
    approve_correction(proposed, now=now)
    rate_leases(tenant, now=now)
    (draft,) = invoices_of(tenant)
    assert draft.total == 400
    verify_invoice(draft)
    assert close_period(tenant).total == (27 * 24 - 2) * 200  # it ran to the end of October


def test_a_refused_correction_leaves_a_running_lease_as_it_was() -> None:
    tenant, project = create_customer()
    lease = add_running_lease(project, create_priced_offering(2 * EURO), BEGUN)
    with pytest.raises(InvalidValue, match="already charged"):
        propose_correction(lease, 2, 4, charge=True, now=BEGUN + timedelta(hours=10))
    with tenant_scope(tenant.pk):
        assert RatedCharge.objects.count() == 0
        assert Lease.objects.get(pk=lease.pk).state_since == BEGUN


def test_unrated_usage_cannot_be_charged_by_a_correction() -> None:
    lease = create_running_lease(price_class="on_demand")
    span = {
        "since": BEGUN,
        "until": BEGUN + 90 * SECOND,
        "why": "x",
        "actor": ANNA,
        "now": BEGUN + 2 * MINUTE,
    }
    with pytest.raises(InvalidValue, match="is charged up to"):
        correction_proposals.propose_lease_correction(lease, charge=True, **span)  # type: ignore[arg-type]


def test_future_usage_cannot_be_charged_by_a_correction() -> None:
    lease = create_running_lease(price_class="on_demand")
    span = {"since": BEGUN + MINUTE, "until": BEGUN + 3 * MINUTE, "why": "x", "actor": ANNA}
    with pytest.raises(InvalidValue, match="Future usage cannot"):
        correction_proposals.propose_lease_correction(lease, charge=True, **span, now=BEGUN + 2 * MINUTE)  # type: ignore[arg-type]


def test_seconds_without_a_price_cannot_be_charged_by_a_correction() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO, since=BEGUN)
    steps = [
        (BEGUN - MINUTE, S.REQUESTED),
        (BEGUN, S.PROVISIONING),
        (BEGUN, S.ACTIVE),
        (BEGUN + MINUTE, S.RELEASED),
    ]
    lease = add_lease_history(project, offering, steps)
    rate_leases(tenant)
    span = {"since": BEGUN - MINUTE, "until": BEGUN, "why": "x", "actor": ANNA, "now": OCTOBER}
    with pytest.raises(InvalidValue, match="has no price at"):
        correction_proposals.propose_lease_correction(lease, charge=True, **span)  # type: ignore[arg-type]


def test_added_seconds_cost_the_price_of_their_time_or_the_quoted_one() -> None:
    tenant, project, lease = create_ten_hour_lease()
    offering = Offering.objects.get(pk=lease.offering_id)
    version = offering.price_versions.get()
    with tenant_scope(tenant.pk):
        quoted = add_ended_lease(project, offering, BEGUN, HOUR)
        add_quote(Lease.objects.get(pk=quoted.pk), version)
    rate_leases(tenant)
    set_price(offering, 3 * EURO, since=BEGUN + timedelta(hours=11))
    approve_correction(propose_correction(lease, 10, 12, charge=True))
    approve_correction(propose_correction(quoted, 10, 12, charge=True))
    assert sorted(exact for _, _, exact in corrected_charges(tenant)) == [200, 200, 200, 300]
    assert invoiced_seconds(tenant) == [(14 * HOUR, 0, 2800), (HOUR, 0, 300)]


def test_a_database_error_while_booking_is_recorded_and_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, lease = create_ten_hour_lease()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    correction = approve_correction(propose_price(version, 150))

    def breaks(*_: object, **__: object) -> bool:
        raise DatabaseError("no room left")

    monkeypatch.setattr(correction_bookings, "book_tenant_correction", breaks)
    assert correction_bookings.book_approved_corrections(now=OCTOBER) == 0
    with staff_scope():
        assert TenantCorrection.objects.get(correction=correction).last_error == "no room left"
    monkeypatch.undo()
    assert correction_bookings.book_approved_corrections(now=OCTOBER) == 1


def test_a_correction_of_an_invoice_voided_since_becomes_outdated() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    correction = approve_correction(propose_price(version, 150, now=NOW), now=NOW)
    with tenant_scope(tenant.pk):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    correction_bookings.book_approved_corrections(now=NOW)
    with staff_scope():
        assert TenantCorrection.objects.get(correction=correction).status == "outdated"
    assert Correction.objects.get().status == "booked"


def test_uncharged_windows_are_the_gaps_between_charged_intervals() -> None:
    def piece(first: int, last: int) -> ChargedInterval:
        start, end = BEGUN + first * MINUTE, BEGUN + last * MINUTE
        return ChargedInterval("lse_x", 2, 1, 1, 1, "prj_x", "off_x", start, end, 1, 1)

    window = BEGUN, BEGUN + 10 * MINUTE
    found = uncharged_windows([piece(-5, -1), piece(2, 4), piece(4, 5), piece(8, 20), piece(30, 40)], window)
    assert found == [(BEGUN, BEGUN + 2 * MINUTE), (BEGUN + 5 * MINUTE, BEGUN + 8 * MINUTE)]
    assert uncharged_windows([], window) == [window]
