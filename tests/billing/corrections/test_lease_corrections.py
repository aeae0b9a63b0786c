"""Lease corrections: preview, approval, booking and credit notes."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.models import CorrectedInterval, Correction, CreditNote, Invoice, InvoiceLine, TenantCorrection
from billing.services.documents import csv_exports, invoice_bundles
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections import correction_bookings, correction_proposals
from billing.services.invoicing.corrections.correction_approvals import CorrectionOutdated, OwnProposal
from billing.services.invoicing.corrections.correction_proposals import NotCorrectable
from billing.services.invoicing.credit_notes import NotCreditable
from billing.services.ledger.invariant_checks import INVARIANTS
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from billing.services.reports.line_explanations import explain_invoice_line
from billing.verify import verify
from broker.services.reports.invariant_checks import RECENT_LEASES_SQL
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.billing.corrections.correction_setup import (
    ANNA,
    BEGUN,
    BEN,
    CLEO,
    NOW,
    OCTOBER,
    approve_correction,
    close_period,
    corrected_charges,
    create_ten_hour_lease,
    invoiced_seconds,
    propose_correction,
    rate_leases,
)
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.payments.payable_invoices import reload_invoice, request_payment

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def verifier_differences(invoice: Invoice) -> list[str]:
    """Return the differences that the independent verifier finds in an invoice."""
    with tenant_scope(invoice.tenant_id):
        found = Invoice.objects.select_related("period").get(pk=invoice.pk)
        raw = invoice_bundles.build_bundle(found).whole(most=10**7)
        assert raw is not None
        for line in InvoiceLine.objects.filter(invoice=found).select_related("invoice__period"):
            assert explain_invoice_line(line).recomputed_equal
    return verify.check(raw).differences


def conservation_differences() -> tuple[int, ...]:
    """Return unmatched seconds, exact differences, misrounded lines and wrong totals."""
    with system_scope():
        ((charged, _, _),) = conservation._query_rows("billing/reports/charged_and_active_seconds", {})
        ((exact, rounding, totals),) = conservation._query_rows(
            "billing/reports/lines_and_charges", conservation._currency_scales()
        )
    return charged, int(exact), rounding, totals


def counterexamples(name: str) -> list[Any]:
    """Return the counterexamples of an invariant."""
    from django.db import connection

    claim = next(each for each in INVARIANTS if each.name == name)
    with staff_scope(), connection.cursor() as cursor:
        cursor.execute(RECENT_LEASES_SQL + claim.counterexamples, {"now": NOW})
        return cursor.fetchall()


def test_a_proposed_correction_is_previewed_and_books_nothing() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    assert (correction.status, correction.minor, correction.needs_two) == ("proposed", 600, False)
    with tenant_scope(tenant.pk):
        share = TenantCorrection.objects.get(correction=correction)
    (line,) = share.diff
    assert (line["month"], line["unit_seconds"], line["before"], line["after"]) == (
        "2026-10",
        -3 * HOUR,
        2000,
        1400,
    )
    assert (invoiced_seconds(tenant), corrected_charges(tenant)) == ([(36000, 0, 2000)], [])


def test_a_credit_in_an_open_month_reduces_the_draft_and_all_reports_agree() -> None:
    tenant, _, lease = create_ten_hour_lease()
    done = approve_correction(propose_correction(lease, 2, 5))
    assert (done.status, done.closed_at) == ("booked", OCTOBER)
    assert corrected_charges(tenant) == [("adjust", -3 * HOUR, -600)]
    assert invoiced_seconds(tenant) == [(7 * HOUR, 0, 1400)]
    rate_leases(tenant)
    drafts.refresh_drafts(tenant, now=OCTOBER)
    assert invoiced_seconds(tenant) == [(7 * HOUR, 0, 1400)]
    invoice = close_period(tenant)
    assert invoice.total == 1400
    assert verifier_differences(invoice) == []
    with tenant_scope(tenant.pk):
        export = "".join(csv_exports.csv_text(invoice, "focus"))
    assert export.count("Adjustment") == 1
    assert conservation_differences() == (0, 0, 0, 0)
    for name in (
        "charges match usage",
        "no charge without usage",
        "refunds match",
        "corrected as approved",
    ):
        assert counterexamples(name) == []


def test_corrections_never_credit_more_than_was_charged() -> None:
    tenant, _, lease = create_ten_hour_lease()
    approve_correction(propose_correction(lease, 2, 5))
    approve_correction(propose_correction(lease, 0, 12))
    assert invoiced_seconds(tenant) == [(0, 0, 0)]
    with pytest.raises(InvalidValue, match="Nothing in this period is charged"):
        propose_correction(lease, 0, 12)
    with pytest.raises(InvalidValue, match="Nothing in this period is charged"):
        propose_correction(lease, 11, 12)
    assert verifier_differences(close_period(tenant)) == []


def test_a_correction_of_a_final_invoice_issues_one_credit_note() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    first = approve_correction(propose_correction(lease, 2, 5, now=NOW), now=NOW)
    with tenant_scope(tenant.pk):
        (note,) = CreditNote.objects.all()
        assert (note.total, note.reason, note.correction_id) == (600, "the GPU was down", first.pk)
        assert corrected_charges(tenant) == []
    assert reload_invoice(invoice).due == 1400
    approve_correction(propose_correction(lease, 0, 12, now=NOW), now=NOW)
    assert reload_invoice(invoice).due == 0
    with tenant_scope(tenant.pk):
        assert [each.total for each in CreditNote.objects.order_by("issued_at", "number")] == [600, 1400]
        before = list(InvoiceLine.objects.values())
        lease_rating.rate_tenant_leases(tenant, now=NOW)
        drafts.refresh_drafts(tenant, now=NOW)
        assert list(InvoiceLine.objects.values()) == before
    assert verifier_differences(invoice) == []


def test_credits_of_thirds_of_a_cent_add_up_to_the_whole_line() -> None:
    tenant, project, _ = create_ten_hour_lease()
    odd = add_ended_lease(project, create_priced_offering(EURO // 1000), BEGUN + DAY, 3 * 3333)
    rate_leases(tenant)
    invoice = close_period(tenant)
    for n in range(3):
        begun = BEGUN + DAY + timedelta(seconds=3333 * n)
        span = {"since": begun, "until": begun + timedelta(seconds=3333)}
        approve_correction(
            correction_proposals.propose_lease_correction(odd, charge=False, **span, why="it", actor=ANNA, now=NOW),
            now=NOW,
        )
    assert reload_invoice(invoice).due == 2000


def test_a_correction_credits_no_more_than_remains_of_the_line() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    issue_note(invoice, {1: 1900})
    correction = approve_correction(propose_correction(lease, 2, 5, now=NOW), now=NOW)
    assert correction.minor == 100
    assert reload_invoice(invoice).due == 0


def test_a_charge_added_to_a_closed_month_is_a_line_of_the_next_invoice() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    approve_correction(propose_correction(lease, 8, 13, charge=True, now=NOW), now=NOW)
    assert corrected_charges(tenant) == [("adjust", 3 * HOUR, 600)]
    assert reload_invoice(invoice).due == 2000
    assert invoiced_seconds(tenant) == [(36000, 0, 2000), (3 * HOUR, 0, 600)]
    november = close_period(tenant, "2026-11", now=utc("2026-12-01 00:05:00"))
    assert (november.total, verifier_differences(november), verifier_differences(invoice)) == (600, [], [])
    assert counterexamples("no charge without usage") == []


def test_wrongly_credited_seconds_are_charged_again() -> None:
    tenant, _, lease = create_ten_hour_lease()
    approve_correction(propose_correction(lease, 2, 5))
    approve_correction(propose_correction(lease, 3, 4, charge=True))
    assert invoiced_seconds(tenant) == [(8 * HOUR, 0, 1600)]
    approve_correction(propose_correction(lease, 0, 10))
    assert invoiced_seconds(tenant) == [(0, 0, 0)]
    assert verifier_differences(close_period(tenant)) == []


def test_the_author_cannot_approve_and_nobody_approves_twice(settings: Any) -> None:
    settings.CORRECTION_APPROVAL_THRESHOLD = 6
    tenant, _, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    with pytest.raises(OwnProposal, match="You have proposed this correction yourself"):
        approve_correction(correction, by=ANNA)
    half = approve_correction(correction)
    assert (half.status, half.needs_two, corrected_charges(tenant)) == ("proposed", True, [])
    with pytest.raises(OwnProposal, match="You have approved this correction yourself"):
        approve_correction(correction)
    done = approve_correction(correction, by=CLEO)
    assert (done.status, done.approver, done.second_approver) == ("booked", BEN.label, CLEO.label)
    with pytest.raises(NotCorrectable, match="The correction is booked"):
        approve_correction(correction, by=CLEO)
    assert corrected_charges(tenant) == [("adjust", -3 * HOUR, -600)]


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
def test_postgresql_requires_approval_by_another_person_before_booking(settings: Any, change: dict[str, str]) -> None:
    settings.CORRECTION_APPROVAL_THRESHOLD = 6
    correction = propose_correction(create_ten_hour_lease()[2], 2, 5)
    with pytest.raises(IntegrityError), transaction.atomic():
        Correction.objects.filter(pk=correction.pk).update(**change)


def test_a_proposed_correction_is_append_only() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    for attack in ({"minor": 0}, {"author_id": "usr_x"}, {"limit_minor": 10**9}):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            Correction.objects.filter(pk=correction.pk).update(**attack)
    with tenant_scope(tenant.pk), pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        TenantCorrection.objects.update(diff=[])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Correction.objects.all()._raw_delete("default")  # type: ignore[attr-defined]


def test_an_outdated_correction_is_not_approved_and_books_nothing() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction, other = propose_correction(lease, 2, 5), propose_correction(lease, 4, 6)
    with pytest.raises(CorrectionOutdated, match="The preview has changed"):
        approve_correction(correction, seen=other.seal)
    approve_correction(other)
    with pytest.raises(CorrectionOutdated, match="no longer match the preview"):
        approve_correction(correction)
    assert Correction.objects.get(pk=correction.pk).status == "proposed"
    assert invoiced_seconds(tenant) == [(8 * HOUR, 0, 1600)]


def test_closing_the_month_outdates_a_correction() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    close_period(tenant)
    with pytest.raises(CorrectionOutdated):
        approve_correction(correction, now=NOW)


def test_new_usage_on_the_same_line_does_not_outdate_a_correction() -> None:
    tenant, project, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    with tenant_scope(tenant.pk):
        add_ended_lease(project, lease.offering, BEGUN + DAY, HOUR)
    rate_leases(tenant)
    assert approve_correction(correction).status == "booked"
    assert invoiced_seconds(tenant) == [(8 * HOUR, 0, 1600)]


def test_a_correction_is_not_booked_while_a_payment_is_in_progress() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    correction = propose_correction(lease, 2, 5, now=NOW)
    request_payment(invoice)
    with pytest.raises(NotCreditable, match="in progress"):
        approve_correction(correction, now=NOW)
    assert Correction.objects.get(pk=correction.pk).status == "proposed"


def test_a_void_invoice_cannot_be_corrected() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    with tenant_scope(tenant.pk):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    with pytest.raises(InvalidValue, match="is void"):
        propose_correction(lease, 2, 5, now=NOW)


def test_a_withdrawn_correction_cannot_be_approved_or_withdrawn_again() -> None:
    _, _, lease = create_ten_hour_lease()
    correction = propose_correction(lease, 2, 5)
    assert correction_proposals.withdraw_correction(correction, actor=BEN, now=OCTOBER).status == "withdrawn"
    for again in (
        lambda: approve_correction(correction),
        lambda: correction_proposals.withdraw_correction(correction, actor=BEN, now=OCTOBER),
    ):
        with pytest.raises(NotCorrectable, match="The correction is withdrawn"):
            again()


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (BEGUN, BEGUN, "The end is before the start"),
        (BEGUN + timedelta(microseconds=1), BEGUN + DAY, "charged in whole seconds"),
        (BEGUN, OCTOBER + DAY, "Future usage"),
        (BEGUN - 500 * DAY, BEGUN, "at most 400 days"),
    ],
)
def test_an_invalid_correction_period_is_refused(since: Any, until: Any, said: str) -> None:
    _, _, lease = create_ten_hour_lease()
    with pytest.raises(InvalidValue, match=said):
        correction_proposals.propose_lease_correction(
            lease, charge=False, since=since, until=until, why="x", actor=ANNA, now=OCTOBER
        )
    assert not Correction.objects.exists()


def test_a_correction_requires_a_reason() -> None:
    with pytest.raises(InvalidValue, match="A reason must have"):
        propose_correction(create_ten_hour_lease()[2], 2, 5, why=" ")


def test_no_charge_can_be_added_before_a_lease_was_created() -> None:
    _, _, lease = create_ten_hour_lease()
    with pytest.raises(InvalidValue, match="did not exist before"):
        correction_proposals.propose_lease_correction(
            lease, charge=True, since=BEGUN - DAY, until=BEGUN + DAY, why="x", actor=ANNA, now=OCTOBER
        )


def test_the_audit_log_records_proposal_approval_and_booking() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction = approve_correction(propose_correction(lease, 2, 5))
    with staff_scope():
        trail = AuditEvent.objects.filter(subject_id=correction.pk).order_by("pk")
        assert [(each.action, each.tenant_id, each.actor_label) for each in trail] == [
            ("correction.propose", "", ANNA.label),
            ("correction.approve", "", BEN.label),
            ("correction.book", tenant.pk, BEN.label),
        ]


def test_booking_a_correction_again_writes_nothing() -> None:
    tenant, _, lease = create_ten_hour_lease()
    correction = approve_correction(propose_correction(lease, 2, 5))
    assert correction_bookings.book_tenant_correction(correction, tenant.pk, now=OCTOBER)
    assert correction_bookings.book_approved_corrections(now=OCTOBER) == 0
    with tenant_scope(tenant.pk):
        assert (CorrectedInterval.objects.count(), len(corrected_charges(tenant))) == (1, 1)


def test_the_verifier_finds_an_altered_correction_in_a_bundle() -> None:
    tenant, _, lease = create_ten_hour_lease()
    approve_correction(propose_correction(lease, 2, 5))
    invoice = close_period(tenant)
    with tenant_scope(tenant.pk):
        raw = invoice_bundles.build_bundle(Invoice.objects.select_related("period").get(pk=invoice.pk)).whole(
            most=10**7
        )
    assert raw is not None
    for old, new in (
        (b'"sign":-1', b'"sign":1'),
        (b'"sign":-1', b'"sign":0'),
        (b'"quantity":1,"sign"', b'"quantity":9,"sign"'),
        (f'"lease":"{lease.pk}"'.encode(), b'"lease":"lse_other"'),
    ):
        assert old in raw
        assert len(verify.check(raw.replace(old, new)).differences) > 1  # beside the seal
