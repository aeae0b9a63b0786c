"""Seconds of a lease that should not, or should, have been charged: seen before they are booked, and booked once."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.models import Correction, CorrectionPart, CorrectionShare, CreditNote, Invoice, InvoiceLine
from billing.services import bundles, conservation, drafts, rating
from billing.services.corrections import booking, proposing
from billing.services.corrections.approving import Outdated, OwnProposal
from billing.services.corrections.proposing import NotCorrectable
from billing.services.crediting import NotCreditable
from billing.services.explain import explain
from billing.services.exports import sheets
from billing.services.proofs import CLAIMS
from billing.verify import verify
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_sweep, as_tenant
from tests.billing.corrections.corrected import (
    ANNA,
    BEGUN,
    BEN,
    CLEO,
    NOW,
    OCTOBER,
    approved,
    charge,
    close,
    lines,
    proposed,
    rows,
    ten_hours,
)
from tests.billing.credits.notes import credit
from tests.billing.histories import EURO, HOUR, at, ran, sold
from tests.billing.payments.bills import fresh, pay

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def verified(invoice: Invoice) -> list[str]:
    """Return what the independent program finds wrong with an invoice."""
    with as_tenant(invoice.tenant_id):
        found = Invoice.objects.select_related("period").get(pk=invoice.pk)
        raw = bundles.bundle(found).whole(most=10**7)
        assert raw is not None
        for line in InvoiceLine.objects.filter(invoice=found).select_related("invoice__period"):
            assert explain(line).recomputed_equal
    return verify.check(raw).differences


def conserved() -> tuple[int, ...]:
    """Return charged against active, lines against charges, misrounded lines and wrong totals."""
    with as_sweep():
        ((charged, _, _),) = conservation._rows("conserve_charges", {})
        ((exact, rounding, totals),) = conservation._rows("conserve_lines", conservation._scales())
    return charged, int(exact), rounding, totals


def held(name: str) -> list[Any]:
    """Return what a proof finds against itself."""
    from django.db import connection

    claim = next(each for each in CLAIMS if each.name == name)
    with as_staff(), connection.cursor() as cursor:
        cursor.execute(claim.counterexamples, {"now": NOW})
        return cursor.fetchall()


def test_what_is_proposed_is_shown_and_books_nothing() -> None:
    tenant, _, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    assert (correction.status, correction.minor, correction.needs_two) == ("proposed", 600, False)
    with as_tenant(tenant.pk):
        share = CorrectionShare.objects.get(correction=correction)
    (line,) = share.diff
    assert (line["month"], line["unit_seconds"], line["before"], line["after"]) == (
        "2026-10",
        -3 * HOUR,
        2000,
        1400,
    )
    assert (lines(tenant), rows(tenant)) == ([(36000, 0, 2000)], [])


def test_of_an_open_month_it_is_charged_less_and_everything_adds_up() -> None:
    tenant, _, lease = ten_hours()
    done = approved(proposed(lease, 2, 5))
    assert (done.status, done.closed_at) == ("booked", OCTOBER)
    assert rows(tenant) == [("adjust", -3 * HOUR, -600)]
    assert lines(tenant) == [(7 * HOUR, 0, 1400)]
    charge(tenant)
    drafts.refresh(tenant, now=OCTOBER)
    assert lines(tenant) == [(7 * HOUR, 0, 1400)]
    invoice = close(tenant)
    assert invoice.total == 1400
    assert verified(invoice) == []
    with as_tenant(tenant.pk):
        export = "".join(sheets.text(invoice, "focus"))
    assert export.count("Adjustment") == 1
    assert conserved() == (0, 0, 0, 0)
    for name in (
        "charged is active",
        "no charge without use",
        "given back is charged",
        "corrected as approved",
    ):
        assert held(name) == []


def test_never_more_is_given_back_than_was_charged() -> None:
    tenant, _, lease = ten_hours()
    approved(proposed(lease, 2, 5))
    approved(proposed(lease, 0, 12))
    assert lines(tenant) == [(0, 0, 0)]
    with pytest.raises(Invalid, match="Nothing of it is charged"):
        proposed(lease, 0, 12)
    with pytest.raises(Invalid, match="Nothing of it is charged"):
        proposed(lease, 11, 12)
    assert verified(close(tenant)) == []


def test_of_a_final_invoice_it_is_a_credit_note_once() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    first = approved(proposed(lease, 2, 5, now=NOW), now=NOW)
    with as_tenant(tenant.pk):
        (note,) = CreditNote.objects.all()
        assert (note.total, note.reason, note.correction_id) == (600, "the card was down", first.pk)
        assert rows(tenant) == []
    assert fresh(invoice).due == 1400
    approved(proposed(lease, 0, 12, now=NOW), now=NOW)
    assert fresh(invoice).due == 0
    with as_tenant(tenant.pk):
        assert [each.total for each in CreditNote.objects.order_by("issued_at", "number")] == [600, 1400]
        before = list(InvoiceLine.objects.values())
        rating.rate_tenant(tenant, now=NOW)
        drafts.refresh(tenant, now=NOW)
        assert list(InvoiceLine.objects.values()) == before
    assert verified(invoice) == []


def test_thirds_of_a_cent_on_a_final_invoice_come_to_all_of_it() -> None:
    tenant, project, _ = ten_hours()
    odd = ran(project, sold(EURO // 1000), BEGUN + DAY, 3 * 3333)
    charge(tenant)
    invoice = close(tenant)
    for n in range(3):
        begun = BEGUN + DAY + timedelta(seconds=3333 * n)
        span = {"since": begun, "until": begun + timedelta(seconds=3333)}
        approved(proposing.of_lease(odd, charge=False, **span, why="it", actor=ANNA, now=NOW), now=NOW)
    assert fresh(invoice).due == 2000


def test_no_more_is_credited_than_is_left_of_the_line() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    credit(invoice, {1: 1900})
    correction = approved(proposed(lease, 2, 5, now=NOW), now=NOW)
    assert correction.minor == 100
    assert fresh(invoice).due == 0


def test_what_should_have_been_charged_is_a_line_of_the_next_invoice() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    approved(proposed(lease, 8, 13, charge=True, now=NOW), now=NOW)
    assert rows(tenant) == [("adjust", 3 * HOUR, 600)]
    assert fresh(invoice).due == 2000
    assert lines(tenant) == [(36000, 0, 2000), (3 * HOUR, 0, 600)]
    november = close(tenant, "2026-11", now=at("2026-12-01 00:05:00"))
    assert (november.total, verified(november), verified(invoice)) == (600, [], [])
    assert held("no charge without use") == []


def test_what_was_given_back_wrongly_is_charged_again() -> None:
    tenant, _, lease = ten_hours()
    approved(proposed(lease, 2, 5))
    approved(proposed(lease, 3, 4, charge=True))
    assert lines(tenant) == [(8 * HOUR, 0, 1600)]
    approved(proposed(lease, 0, 10))
    assert lines(tenant) == [(0, 0, 0)]
    assert verified(close(tenant)) == []


def test_the_author_does_not_approve_nor_does_anybody_twice(settings: Any) -> None:
    settings.CORRECTION_LIMIT = 6
    tenant, _, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    with pytest.raises(OwnProposal, match="You have proposed it yourself"):
        approved(correction, by=ANNA)
    half = approved(correction)
    assert (half.status, half.needs_two, rows(tenant)) == ("proposed", True, [])
    with pytest.raises(OwnProposal, match="You have approved it yourself"):
        approved(correction)
    done = approved(correction, by=CLEO)
    assert (done.status, done.approver, done.second_approver) == ("booked", BEN.label, CLEO.label)
    with pytest.raises(NotCorrectable, match="It is booked"):
        approved(correction, by=CLEO)
    assert rows(tenant) == [("adjust", -3 * HOUR, -600)]


@pytest.mark.parametrize(
    "change",
    [
        {"approver_id": ANNA.id},
        {"second_approver_id": BEN.id},
        {"approver_id": BEN.id, "second_approver_id": BEN.id},
        {"approver_id": BEN.id, "second_approver_id": ANNA.id},
        {"status": "approved"},
        {"status": "approved", "approver_id": BEN.id},
    ],
)
def test_the_database_knows_that_people_differ_and_that_approval_comes_first(
    settings: Any, change: dict[str, str]
) -> None:
    settings.CORRECTION_LIMIT = 6
    correction = proposed(ten_hours()[2], 2, 5)
    with pytest.raises(IntegrityError), transaction.atomic():
        Correction.objects.filter(pk=correction.pk).update(**change)


def test_what_was_proposed_never_changes() -> None:
    tenant, _, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    for attack in ({"minor": 0}, {"author_id": "usr_x"}, {"limit_minor": 10**9}):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            Correction.objects.filter(pk=correction.pk).update(**attack)
    with as_tenant(tenant.pk), pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        CorrectionShare.objects.update(diff=[])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Correction.objects.all()._raw_delete("default")  # type: ignore[attr-defined]


def test_approving_what_has_changed_since_is_refused_and_nothing_is_booked() -> None:
    tenant, _, lease = ten_hours()
    correction, other = proposed(lease, 2, 5), proposed(lease, 4, 6)
    with pytest.raises(Outdated, match="You saw another diff"):
        approved(correction, seen=other.seal)
    approved(other)
    with pytest.raises(Outdated, match="no longer what was shown"):
        approved(correction)
    assert Correction.objects.get(pk=correction.pk).status == "proposed"
    assert lines(tenant) == [(8 * HOUR, 0, 1600)]


def test_a_month_that_was_closed_meanwhile_makes_it_outdated() -> None:
    tenant, _, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    close(tenant)
    with pytest.raises(Outdated):
        approved(correction, now=NOW)


def test_what_grows_on_the_same_line_meanwhile_does_not() -> None:
    tenant, project, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    with as_tenant(tenant.pk):
        ran(project, lease.offering, BEGUN + DAY, HOUR)
    charge(tenant)
    assert approved(correction).status == "booked"
    assert lines(tenant) == [(8 * HOUR, 0, 1600)]


def test_nothing_is_credited_while_a_payment_is_under_way() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    correction = proposed(lease, 2, 5, now=NOW)
    pay(invoice)
    with pytest.raises(NotCreditable, match="under way"):
        approved(correction, now=NOW)
    assert Correction.objects.get(pk=correction.pk).status == "proposed"


def test_a_void_invoice_is_not_credited() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    with as_tenant(tenant.pk):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    with pytest.raises(Invalid, match="made void"):
        proposed(lease, 2, 5, now=NOW)


def test_a_proposal_is_withdrawn_once() -> None:
    _, _, lease = ten_hours()
    correction = proposed(lease, 2, 5)
    assert proposing.withdraw(correction, actor=BEN, now=OCTOBER).status == "withdrawn"
    for again in (
        lambda: approved(correction),
        lambda: proposing.withdraw(correction, actor=BEN, now=OCTOBER),
    ):
        with pytest.raises(NotCorrectable, match="It is withdrawn"):
            again()


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (BEGUN, BEGUN, "ends before it begins"),
        (BEGUN + timedelta(microseconds=1), BEGUN + DAY, "charged whole"),
        (BEGUN, OCTOBER + DAY, "still to come"),
        (BEGUN - 500 * DAY, BEGUN, "At most 400 days"),
    ],
)
def test_a_stretch_that_is_none_is_refused(since: Any, until: Any, said: str) -> None:
    _, _, lease = ten_hours()
    with pytest.raises(Invalid, match=said):
        proposing.of_lease(lease, charge=False, since=since, until=until, why="x", actor=ANNA, now=OCTOBER)
    assert not Correction.objects.exists()


def test_it_has_a_reason() -> None:
    with pytest.raises(Invalid, match="A reason has"):
        proposed(ten_hours()[2], 2, 5, why=" ")


def test_before_a_lease_was_there_nothing_is_charged_more() -> None:
    _, _, lease = ten_hours()
    with pytest.raises(Invalid, match="was not there before"):
        proposing.of_lease(
            lease, charge=True, since=BEGUN - DAY, until=BEGUN + DAY, why="x", actor=ANNA, now=OCTOBER
        )


def test_the_trail_of_operators_and_of_the_tenant_tell_it() -> None:
    tenant, _, lease = ten_hours()
    correction = approved(proposed(lease, 2, 5))
    with as_staff():
        trail = AuditEvent.objects.filter(subject_id=correction.pk).order_by("pk")
        assert [(each.action, each.tenant_id, each.actor_label) for each in trail] == [
            ("correction.propose", "", ANNA.label),
            ("correction.approve", "", BEN.label),
            ("correction.book", tenant.pk, BEN.label),
        ]


def test_booking_it_again_writes_nothing() -> None:
    tenant, _, lease = ten_hours()
    correction = approved(proposed(lease, 2, 5))
    assert booking.book(correction, tenant.pk, now=OCTOBER)
    assert booking.book_due(now=OCTOBER) == 0
    with as_tenant(tenant.pk):
        assert (CorrectionPart.objects.count(), len(rows(tenant))) == (1, 1)


def test_a_bundle_whose_correction_was_altered_is_found_out() -> None:
    tenant, _, lease = ten_hours()
    approved(proposed(lease, 2, 5))
    invoice = close(tenant)
    with as_tenant(tenant.pk):
        raw = bundles.bundle(Invoice.objects.select_related("period").get(pk=invoice.pk)).whole(most=10**7)
    assert raw is not None
    for old, new in (
        (b'"sign":-1', b'"sign":1'),
        (b'"sign":-1', b'"sign":0'),
        (b'"quantity":1,"sign"', b'"quantity":9,"sign"'),
        (f'"lease":"{lease.pk}"'.encode(), b'"lease":"lse_other"'),
    ):
        assert old in raw
        assert len(verify.check(raw.replace(old, new)).differences) > 1  # beside the seal
