"""A price that was published wrongly and used: everybody's invoices, final and open, as they should have been."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import Correction, CorrectionShare, CreditNote, Invoice, PriceVersion
from billing.services import bundles
from billing.services.corrections import booking
from billing.services.corrections.approving import OwnProposal
from billing.verify import verify
from broker.models import Lease, Offering
from ports import doorbell
from tenants.models import Tenant
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.corrections.corrected import (
    ANNA,
    BEGUN,
    CLEO,
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
from tests.billing.corrections.test_leases import conserved, held, verified
from tests.billing.histories import HOUR, at, customer, promise, ran
from tests.billing.payments.bills import collect, fresh, pay

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
LATER = at("2026-12-01 00:05:00")


def two_tenants() -> tuple[PriceVersion, Tenant, Tenant]:
    """Return a price of two euros and two tenants that used ten hours of it on the fifth of October."""
    first, _, lease = ten_hours()
    second, project = customer()
    offering = Offering.objects.get(pk=lease.offering_id)
    ran(project, offering, BEGUN, 10 * HOUR)
    charge(second)
    return offering.price_versions.get(), first, second


def shares(correction: Correction) -> dict[str, tuple[str, int]]:
    with as_staff():
        found = CorrectionShare.objects.filter(correction=correction)
        return {each.tenant_id: (each.status, each.minor) for each in found}


def booked(correction: Correction, *, now: Any = NOW) -> Correction:
    booking.book_due(now=now)
    return Correction.objects.get(pk=correction.pk)


def test_final_months_get_credit_notes_and_open_ones_charges_and_prices_stay() -> None:
    version, final, open_ = two_tenants()
    invoice = close(final)
    correction = repriced(version, 150, 2, 8, now=NOW)
    assert shares(correction) == {final.pk: ("waiting", -300), open_.pk: ("waiting", -300)}
    assert correction.minor == 600
    done = (
        approved(approved_first(correction), by=CLEO, now=NOW)
        if correction.needs_two
        else approved(correction, now=NOW)
    )
    assert done.status == "approved"
    assert booked(done).status == "booked"
    assert fresh(invoice).due == 1700
    with as_tenant(final.pk):
        (note,) = CreditNote.objects.all()
        assert (note.total, note.correction_id) == (300, correction.pk)
    assert rows(open_) == [("adjust", -6 * HOUR, -1200), ("adjust", 6 * HOUR, 900)]
    assert lines(open_) == [(10 * HOUR, 0, 1700)]
    version.refresh_from_db()
    assert version.nano_per_hour == 2 * 10**9
    assert verified(invoice) == []
    assert verified(close(open_)) == []
    assert conserved() == (0, 0, 0, 0)
    for name in (
        "corrected as approved",
        "charged is active",
        "no charge without use",
        "promised is charged",
    ):
        assert held(name) == []


def approved_first(correction: Correction) -> Correction:
    return approved(correction, now=NOW)


def test_charging_the_month_again_afterwards_writes_nothing() -> None:
    version, final, open_ = two_tenants()
    close(final)
    booked(approved(repriced(version, 150, now=NOW), now=NOW))
    before = (rows(final), rows(open_), lines(final), lines(open_))
    for tenant in (final, open_):
        charge(tenant, now=NOW)
    booking.book_due(now=NOW)
    assert (rows(final), rows(open_), lines(final), lines(open_)) == before
    with pytest.raises(Invalid, match="nothing would change"):
        repriced(version, 150, now=NOW)


def test_a_price_that_was_too_low_is_a_line_of_the_next_invoice() -> None:
    version, final, _ = two_tenants()
    invoice = close(final)
    booked(approved(repriced(version, 250, 0, 4, now=NOW), now=NOW))
    assert fresh(invoice).due == 2000
    assert lines(final) == [(10 * HOUR, 0, 2000), (0, 0, 200)]
    november = close(final, "2026-11", now=LATER)
    assert (november.total, verified(november), verified(invoice)) == (200, [], [])


def test_a_wrong_correction_is_corrected() -> None:
    version, _, open_ = two_tenants()
    booked(approved(repriced(version, 150, 2, 8)))
    booked(approved(repriced(version, 180, 4, 10)))
    assert lines(open_) == [(10 * HOUR, 0, 2000 - 2 * 50 - 6 * 20)]
    assert verified(close(open_)) == []


def test_seconds_are_given_back_at_what_they_cost_by_then_and_not_repriced_after() -> None:
    tenant, _, lease = ten_hours()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    booked(approved(repriced(version, 150, 2, 8)))
    approved(proposed(lease, 7, 9))
    assert lines(tenant) == [(8 * HOUR, 0, 2000 - 300 - 150 - 200)]
    booked(approved(repriced(version, 100, 0, 10)))
    assert lines(tenant) == [(8 * HOUR, 0, 800)]
    assert verified(close(tenant)) == []


def test_a_quote_keeps_its_price_where_that_is_less() -> None:
    tenant, project, lease = ten_hours()
    offering = Offering.objects.get(pk=lease.offering_id)
    version = offering.price_versions.get()
    with as_tenant(tenant.pk):
        quoted = ran(project, offering, BEGUN + timedelta(hours=1), HOUR)
        promise(Lease.objects.get(pk=quoted.pk), version)
    charge(tenant)
    booked(approved(repriced(version, 300)))
    assert lines(tenant) == [(11 * HOUR, 0, 3200)]
    booked(approved(repriced(version, 100)))
    assert lines(tenant) == [(11 * HOUR, 0, 1100)]
    assert verified(close(tenant)) == []


def test_who_dies_between_two_tenants_goes_on_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    version, first, second = two_tenants()
    correction = approved(repriced(version, 150))

    class Killed(BaseException):
        pass

    write, done = booking._write, []

    def dies(*args: Any) -> None:
        write(*args)
        done.append(args)
        if len(done) == 2:
            raise Killed

    monkeypatch.setattr(booking, "_write", dies)
    with pytest.raises(Killed):
        booking.book_due(now=OCTOBER)
    monkeypatch.undo()
    assert sorted(status for status, _ in shares(correction).values()) == ["booked", "waiting"]
    assert booked(correction, now=OCTOBER).status == "booked"
    assert (lines(first), lines(second)) == ([(10 * HOUR, 0, 1500)],) * 2
    assert booking.book_due(now=OCTOBER) == 0


def test_a_tenant_whose_charges_changed_since_is_left_out_and_said_so() -> None:
    version, first, second = two_tenants()
    correction = repriced(version, 150)
    with as_tenant(first.pk):
        lease = Lease.objects.get(tenant=first)
    approved(proposed(lease, 2, 5))
    assert booked(approved(correction), now=OCTOBER).status == "booked"
    assert shares(correction) == {first.pk: ("outdated", -500), second.pk: ("booked", -500)}
    assert lines(first) == [(7 * HOUR, 0, 1400)]
    booked(approved(repriced(version, 150)))
    assert lines(first) == [(7 * HOUR, 0, 1050)]


def test_a_payment_under_way_holds_up_only_its_own_tenant() -> None:
    version, first, second = two_tenants()
    invoice = close(first)
    correction = approved(repriced(version, 150, now=NOW), now=NOW)
    payment = pay(invoice)
    assert booked(correction).status == "approved"
    assert {status for status, _ in shares(correction).values()} == {"waiting", "booked"}
    with as_tenant(first.pk):
        assert "under way" in CorrectionShare.objects.get(correction=correction).trouble
    collect(payment)
    assert booked(correction).status == "booked"
    assert lines(second) == [(10 * HOUR, 0, 1500)]


def test_from_the_limit_on_two_approve_it(settings: Any) -> None:
    settings.CORRECTION_LIMIT = 10
    version, *_ = two_tenants()
    correction = repriced(version, 150)
    rung: list[str] = []
    with doorbell.heard_by(lambda task, *_: rung.append(task)):
        assert approved(correction).status == "proposed"
        with pytest.raises(OwnProposal):
            approved(correction, by=ANNA)
        assert approved(correction, by=CLEO).status == "approved"
    assert rung == ["billing.book_corrections"]


def test_where_nobody_used_it_nothing_is_proposed() -> None:
    version, *_ = two_tenants()
    with pytest.raises(Invalid, match="Nothing of it is charged"):
        repriced(version, 150, 11, 12)
    with pytest.raises(Invalid):
        repriced(version, -1)


def test_an_invoice_of_an_open_month_is_told_with_what_was_corrected() -> None:
    version, _, open_ = two_tenants()
    booked(approved(repriced(version, 150)))
    with as_tenant(open_.pk):
        raw = bundles.bundle(Invoice.objects.select_related("period").get(tenant=open_)).whole(most=10**7)
    assert raw is not None
    assert verify.check(raw).differences == []
    assert b'"instead":"1500000000"' in raw
