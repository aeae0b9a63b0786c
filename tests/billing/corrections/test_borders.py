"""Where corrections end: young starts, seconds without a price or a charge yet, promises, and what breaks meanwhile."""

from datetime import timedelta

import pytest
from django.db import DatabaseError

from billing.domain.correcting import Piece, free
from billing.models import Correction, CorrectionShare, Invoice
from billing.services.corrections import booking, proposing
from broker.domain.states import LeaseState
from broker.models import Lease, Offering
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.corrections.corrected import (
    ANNA,
    BEGUN,
    NOW,
    OCTOBER,
    approved,
    charge,
    close,
    lines,
    proposed,
    repriced,
    rows,
    ten_hours,
)
from tests.billing.histories import EURO, HOUR, customer, lived, promise, ran, reprice, sold

pytestmark = pytest.mark.django_db
S = LeaseState
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def still_runs(*, price_class: str) -> Lease:
    """Return a lease that was active for a minute that is charged, and runs on."""
    tenant, project = customer()
    steps = [(BEGUN, S.REQUESTED), (BEGUN, S.PROVISIONING), (BEGUN, S.ACTIVE), (BEGUN + MINUTE, S.ACTIVE)]
    lease = lived(project, sold(36 * EURO, price_class=price_class), steps)
    charge(tenant, now=BEGUN + MINUTE)
    return lease


def test_a_start_that_may_still_be_given_back_by_itself_is_not_corrected() -> None:
    lease = still_runs(price_class="spot")
    span = {"since": BEGUN, "until": BEGUN + MINUTE, "why": "x", "actor": ANNA}
    with pytest.raises(Invalid, match="began so lately"):
        proposing.of_lease(lease, charge=False, **span, now=BEGUN + 2 * MINUTE)  # type: ignore[arg-type]
    later = BEGUN + 8 * MINUTE
    assert proposing.of_lease(lease, charge=False, **span, now=later).minor == 60  # type: ignore[arg-type]


def test_what_runs_on_demand_is_corrected_while_it_runs() -> None:
    lease = still_runs(price_class="on_demand")
    span = {"since": BEGUN, "until": BEGUN + MINUTE, "why": "x", "actor": ANNA, "now": BEGUN + 2 * MINUTE}
    assert proposing.of_lease(lease, charge=False, **span).minor == 60  # type: ignore[arg-type]


def test_what_is_charged_soon_by_itself_is_not_charged_before() -> None:
    lease = still_runs(price_class="on_demand")
    span = {
        "since": BEGUN,
        "until": BEGUN + 90 * SECOND,
        "why": "x",
        "actor": ANNA,
        "now": BEGUN + 2 * MINUTE,
    }
    with pytest.raises(Invalid, match="is charged up to"):
        proposing.of_lease(lease, charge=True, **span)  # type: ignore[arg-type]


def test_what_is_still_to_come_is_not_charged_before() -> None:
    lease = still_runs(price_class="on_demand")
    span = {"since": BEGUN + MINUTE, "until": BEGUN + 3 * MINUTE, "why": "x", "actor": ANNA}
    with pytest.raises(Invalid, match="still to come cannot"):
        proposing.of_lease(lease, charge=True, **span, now=BEGUN + 2 * MINUTE)  # type: ignore[arg-type]


def test_seconds_without_a_price_are_not_charged() -> None:
    tenant, project = customer()
    offering = sold(2 * EURO, since=BEGUN)
    steps = [
        (BEGUN - MINUTE, S.REQUESTED),
        (BEGUN, S.PROVISIONING),
        (BEGUN, S.ACTIVE),
        (BEGUN + MINUTE, S.RELEASED),
    ]
    lease = lived(project, offering, steps)
    charge(tenant)
    span = {"since": BEGUN - MINUTE, "until": BEGUN, "why": "x", "actor": ANNA, "now": OCTOBER}
    with pytest.raises(Invalid, match="has no price at"):
        proposing.of_lease(lease, charge=True, **span)  # type: ignore[arg-type]


def test_what_is_charged_more_is_at_the_price_of_its_second_or_as_promised() -> None:
    tenant, project, lease = ten_hours()
    offering = Offering.objects.get(pk=lease.offering_id)
    version = offering.price_versions.get()
    with as_tenant(tenant.pk):
        quoted = ran(project, offering, BEGUN, HOUR)
        promise(Lease.objects.get(pk=quoted.pk), version)
    charge(tenant)
    reprice(offering, 3 * EURO, since=BEGUN + timedelta(hours=11))
    approved(proposed(lease, 10, 12, charge=True))
    approved(proposed(quoted, 10, 12, charge=True))
    assert sorted(exact for _, _, exact in rows(tenant)) == [200, 300, 400]
    assert lines(tenant) == [(14 * HOUR, 0, 2800), (HOUR, 0, 300)]


def test_a_database_that_refuses_one_tenant_is_noted_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, lease = ten_hours()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    correction = approved(repriced(version, 150))

    def breaks(*_: object, **__: object) -> bool:
        raise DatabaseError("no room left")

    monkeypatch.setattr(booking, "book", breaks)
    assert booking.book_due(now=OCTOBER) == 0
    with as_staff():
        assert CorrectionShare.objects.get(correction=correction).trouble == "no room left"
    monkeypatch.undo()
    assert booking.book_due(now=OCTOBER) == 1


def test_an_invoice_that_was_made_void_meanwhile_makes_its_tenant_outdated() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    correction = approved(repriced(version, 150, now=NOW), now=NOW)
    with as_tenant(tenant.pk):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    booking.book_due(now=NOW)
    with as_staff():
        assert CorrectionShare.objects.get(correction=correction).status == "outdated"
    assert Correction.objects.get().status == "booked"


def test_what_is_free_of_charges_lies_between_them() -> None:
    def piece(first: int, last: int) -> Piece:
        start, end = BEGUN + first * MINUTE, BEGUN + last * MINUTE
        return Piece("lse_x", 2, 1, 1, 1, "prj_x", "off_x", start, end, 1, 1)

    window = BEGUN, BEGUN + 10 * MINUTE
    found = free([piece(-5, -1), piece(2, 4), piece(4, 5), piece(8, 20), piece(30, 40)], window)
    assert found == [(BEGUN, BEGUN + 2 * MINUTE), (BEGUN + 5 * MINUTE, BEGUN + 8 * MINUTE)]
    assert free([], window) == [window]
