"""Disputes: window, amounts, answers, collection and dunning."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.domain.disputes import undisputed_due
from billing.domain.periods import deadline_after
from billing.gateways.simulated import GatewayFault
from billing.models import CreditNote, Dispute, DisputeStep, DunningStep, Invoice
from billing.services.documents.invoice_documents import invoice_document
from billing.services.funds.accounts import account_terms
from billing.services.invoicing.credit_notes import NotCreditable
from billing.services.invoicing.disputes import dispute_answers, dispute_requests
from billing.services.invoicing.disputes.dispute_requests import DisputeClosed, NotDisputable
from billing.services.payments import disputed_amounts
from billing.services.payments.dunning import dunning_steps, overdue_status
from billing.services.payments.payment_status import payment_status
from tenants.models import AuditEvent, Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.histories import OPERATOR, utc
from tests.billing.ledger.ledger_rows import transfers_of
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    charged_amounts,
    create_draft_invoice,
    fail_next_charges,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, create_october_invoice, set_billing_details, set_tax_rate

pytestmark = pytest.mark.django_db
WHY = "that GPU was down all night"
DAY = timedelta(days=1)
UNTIL = utc("2026-11-16 00:00:00")  # a fortnight after the first of November, that day not counted


def dispute(
    invoice: Invoice, lines: Mapping[int, int | None], *, reason: str = WHY, now: datetime = NOW
) -> Sequence[Dispute]:
    return dispute_requests.dispute_lines(invoice, lines=lines, reason=reason, actor=MIRA, now=now)


def accept(found: Dispute, minor: int | None = None, *, answer: str = "", now: datetime = NOW) -> Dispute:
    return dispute_answers.accept_dispute(found, minor=minor, answer=answer, actor=OPERATOR, now=now)


def decline(found: Dispute, *, answer: str = "it ran all night", now: datetime = NOW) -> Dispute:
    return dispute_answers.decline_dispute(found, answer=answer, actor=OPERATOR, now=now)


def dispute_steps(found: Dispute) -> list[tuple[int, str, int, str, str]]:
    with tenant_scope(found.tenant_id):
        rows = DisputeStep.objects.filter(dispute=found).order_by("n")
        return list(rows.values_list("n", "status", "minor", "words", "by"))


def disputes_of(invoice: Invoice) -> list[Dispute]:
    with tenant_scope(invoice.tenant_id):
        return list(Dispute.objects.filter(invoice=invoice).order_by("opened_at", "pk"))


@pytest.mark.parametrize(
    ("zone", "final", "until"),
    [
        ("UTC", "2026-11-01 00:05:00", "2026-11-16 00:00:00"),
        ("America/New_York", "2026-10-20 12:00:00", "2026-11-04 05:00:00"),  # clocks go back in between
        ("Australia/Lord_Howe", "2026-09-30 13:30:00", "2026-10-15 13:00:00"),  # by half an hour
        ("Asia/Kolkata", "2026-11-01 18:29:59", "2026-11-15 18:30:00"),
        ("Asia/Kolkata", "2026-11-01 18:30:00", "2026-11-16 18:30:00"),
    ],
)
def test_the_dispute_window_ends_at_midnight_in_the_tenants_time_zone(zone: str, final: str, until: str) -> None:
    assert deadline_after(utc(final), ZoneInfo(zone), days=14) == utc(until)


def test_the_undisputed_amount_due_is_never_negative() -> None:
    assert (undisputed_due(300, []), undisputed_due(300, [100, 50]), undisputed_due(100, [150])) == (
        300,
        150,
        0,
    )


def test_lines_can_be_disputed_in_full_or_in_part_without_a_booking() -> None:
    invoice = create_october_invoice_of()
    before = transfers_of(invoice)
    first, second = dispute(invoice, {2: None, 1: 50})
    assert [(each.line.n, each.minor, each.total, each.status) for each in (first, second)] == [
        (1, 50, 50, "open"),
        (2, 105, 105, "open"),
    ]
    assert dispute_steps(first) == [(0, "open", 50, WHY, MIRA.label)]
    assert (transfers_of(invoice), reload_invoice(invoice).due) == (before, 305)
    with tenant_scope(invoice.tenant_id):
        trail = AuditEvent.objects.filter(action="dispute.open").order_by("pk")
        assert [(each.subject_id, each.detail["amount"], each.actor_label) for each in trail] == [
            (first.pk, 50, MIRA.label),
            (second.pk, 105, MIRA.label),
        ]


def test_an_invoice_states_its_dispute_deadline_which_never_changes(settings: Any) -> None:
    invoice = reload_invoice(create_october_invoice_of())
    assert (invoice.disputable_until, disputed_amounts.dispute_window_end(invoice)) == (UNTIL, UNTIL)
    with tenant_scope(invoice.tenant_id):
        assert "until the end of 15 November 2026" in str(invoice_document(invoice).notes)
    settings.DISPUTE_WINDOW_DAYS = 3
    assert disputed_amounts.dispute_window_end(invoice) == UNTIL
    with (
        tenant_scope(invoice.tenant_id),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
    ):
        Invoice.objects.filter(pk=invoice.pk).update(disputable_until=UNTIL + DAY)


def test_an_invoice_does_not_mention_disputes_where_they_are_disabled(settings: Any) -> None:
    settings.DISPUTE_WINDOW_DAYS = 0
    invoice = reload_invoice(create_october_invoice_of())
    assert invoice.disputable_until is None
    with tenant_scope(invoice.tenant_id):
        assert "dispute" not in str(invoice_document(invoice).notes).lower()
    with pytest.raises(NotDisputable, match="Disputes are disabled"):
        dispute(invoice, {1: None})
    settings.DISPUTE_WINDOW_DAYS = 14
    assert disputed_amounts.dispute_window_end(invoice) == UNTIL  # as of any that became final before invoices said so


def test_a_line_can_be_disputed_until_the_last_second_of_the_window() -> None:
    invoice = create_october_invoice_of()
    dispute(invoice, {1: None}, now=UNTIL - timedelta(seconds=1))
    with pytest.raises(NotDisputable, match="until the end of 15 November 2026"):
        dispute(invoice, {2: None}, now=UNTIL)


def test_drafts_and_void_invoices_cannot_be_disputed() -> None:
    void = create_october_invoice_of()
    with tenant_scope(void.tenant_id):
        Invoice.objects.filter(pk=void.pk).update(status="void")
    for invoice in (create_draft_invoice(), void):
        assert disputed_amounts.dispute_window_end(create_draft_invoice()) is None
        with pytest.raises(NotDisputable, match="This invoice is"):
            dispute(invoice, {1: None})
        assert disputes_of(invoice) == []


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ({1: 201}, "At most €2.00"),
        ({9: None}, "no line 9"),
        ({9: 5}, "no line 9"),
        ({1: 0}, "is zero"),
        ({}, "No lines were given"),
        (dict.fromkeys(range(1, 203)), "At most 200 lines"),
    ],
)
def test_invalid_lines_and_amounts_cannot_be_disputed(lines: dict[int, int | None], why: str) -> None:
    invoice = create_october_invoice_of()
    with pytest.raises(InvalidValue, match=why):
        dispute(invoice, lines)
    assert disputes_of(invoice) == []


def test_only_the_uncredited_part_of_a_line_can_be_disputed() -> None:
    invoice = create_october_invoice_of()
    issue_note(invoice, {1: 150})
    with pytest.raises(InvalidValue, match=r"At most €0\.50"):
        dispute(invoice, {1: 51})
    (found,) = dispute(invoice, {1: None})
    assert found.minor == 50


@pytest.mark.parametrize("reason", ["", " \n", "x" * 501, "a\x00b"])
def test_a_dispute_requires_a_valid_reason(reason: str) -> None:
    invoice = create_october_invoice_of()
    with pytest.raises(InvalidValue, match="A reason must have"):
        dispute(invoice, {1: None}, reason=reason)


def test_a_second_open_dispute_of_a_line_refuses_the_whole_request() -> None:
    invoice = create_october_invoice_of()
    (first,) = dispute(invoice, {1: 50})
    with pytest.raises(NotDisputable, match="Line 1 is already disputed"):
        dispute(invoice, {1: 20, 2: None})
    assert [each.pk for each in disputes_of(invoice)] == [first.pk]
    with tenant_scope(invoice.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        Dispute.objects.create(
            tenant_id=invoice.tenant_id, invoice=invoice, line=first.line, minor=1, currency="EUR", reason="x",
            opened_at=NOW, opened_by="x",
        )  # fmt: skip
    decline(first)
    (again,) = dispute(invoice, {1: 20})
    assert again.status == "open"


def test_a_dispute_accepted_in_full_issues_a_credit_note_with_tax(settings: Any) -> None:
    invoice = create_taxed_invoice(settings)
    (found,) = dispute(invoice, {1: None})
    assert (found.minor, found.tax_minor) == (200, 38)
    done = accept(found)
    assert done.credit_note is not None
    assert (done.status, done.credit_note.total, done.credit_note.tax) == ("accepted", 238, 38)
    assert done.credit_note.reason == done.answer == "The dispute is accepted. The full amount is credited."
    assert dispute_steps(done)[1:] == [(1, "accepted", 200, done.answer, OPERATOR.label)]


def test_a_partly_accepted_dispute_credits_only_the_accepted_amount() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: 150})
    for much in (151, 0, -1):
        with pytest.raises(InvalidValue, match=r"At most €1\.50 is disputed"):
            accept(found, much)
    done = accept(found, 40, answer="an hour of it")
    assert done.credit_note is not None
    assert (done.credit_note.total, done.credit_note.reason, done.answer) == (
        40,
        "an hour of it",
        "an hour of it",
    )
    assert reload_invoice(invoice).due == 265


def test_an_accepted_dispute_credits_at_most_the_uncredited_part_of_its_line() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: None})
    issue_note(invoice, {1: 150})
    with pytest.raises(InvalidValue, match=r"only €0\.50 is left"):
        accept(found, 51)
    assert accept(found, 50).status == "accepted"


def test_a_declined_dispute_requires_a_reason_and_credits_nothing() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: None})
    with pytest.raises(InvalidValue, match="A reason must have"):
        decline(found, answer=" ")
    done = decline(found)
    assert (done.status, done.answer, reload_invoice(invoice).due) == ("declined", "it ran all night", 305)
    with tenant_scope(invoice.tenant_id):
        assert not CreditNote.objects.exists()


def test_a_closed_dispute_cannot_be_closed_again() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: None})
    dispute_requests.withdraw_dispute(found, actor=MIRA, now=NOW)
    assert [status for _, status, *_ in dispute_steps(found)] == ["open", "withdrawn"]
    for again in (accept, decline, lambda each: dispute_requests.withdraw_dispute(each, actor=MIRA, now=NOW)):
        with pytest.raises(DisputeClosed, match="It was closed as withdrawn on 01 Nov 2026"):
            again(found)
    with (
        tenant_scope(invoice.tenant_id),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
    ):
        Dispute.objects.filter(pk=found.pk).update(status="open", closed_at=None)
    for attack in (Dispute, DisputeStep):
        with (
            tenant_scope(invoice.tenant_id),
            pytest.raises(DatabaseError, match=r"append-only|permission denied"),
            transaction.atomic(),
        ):
            attack.objects.all()._raw_delete("default")  # type: ignore[attr-defined]


def test_a_dispute_cannot_be_accepted_during_a_payment() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: None})
    payment = request_payment(invoice)  # by a person, who may pay all of it all the same
    with pytest.raises(NotCreditable, match="in progress"):
        accept(found)
    process_payment(payment)
    done = accept(found)
    assert done.credit_note is not None
    assert done.credit_note.to_balance == 200


def test_automatic_payments_wait_while_a_dispute_is_open() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: 50})
    with tenant_scope(invoice.tenant_id):
        assert not payment_status(reload_invoice(invoice)).automatic
    sweep_payments(NOW)
    assert charged_amounts(invoice) == []
    accept(found)
    with tenant_scope(invoice.tenant_id):
        assert payment_status(reload_invoice(invoice)).automatic
    sweep_payments(NOW)
    assert charged_amounts(invoice) == [255]


def test_an_invoice_disputed_before_its_automatic_payment_is_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    from billing.services.payments import payment_creation

    invoice = create_october_invoice_of()
    dispute(invoice, {1: 50})
    monkeypatch.setattr(payment_creation, "_due_invoices", lambda now: [(invoice.pk, invoice.tenant_id)])
    assert payment_creation.open_due_payments(now=NOW) == 0


def dunning_actions(invoice: Invoice) -> list[tuple[str, int]]:
    with tenant_scope(invoice.tenant_id):
        return list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("action", "minor"))


def decline_payment(invoice: Invoice) -> None:
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))


def test_dunning_demands_only_the_undisputed_amount() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    dispute(invoice, {1: None})
    dunning_steps.run_dunning(now=NOW + 18 * DAY)
    assert dunning_actions(invoice) == [("remind", 105)]
    with tenant_scope(invoice.tenant_id):
        assert "€1.05" in account_terms.terms_of(invoice.tenant).why


def test_a_fully_disputed_invoice_pauses_dunning_and_restarts_the_interval() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    found = dispute(invoice, {1: None, 2: None})
    dunning_steps.run_dunning(now=NOW + 40 * DAY)
    assert dunning_actions(invoice) == []
    for each in found:
        decline(each, now=NOW + 40 * DAY)
    dunning_steps.run_dunning(now=NOW + 42 * DAY)
    assert dunning_actions(invoice) == []
    dunning_steps.run_dunning(now=NOW + 43 * DAY)
    assert dunning_actions(invoice) == [("remind", 305)]


def test_an_open_dispute_limits_dunning_to_reminders() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    for days in (18, 25, 32, 45, 60):
        dunning_steps.run_dunning(now=NOW + days * DAY)
    assert [action for action, _ in dunning_actions(invoice)] == ["remind", "remind"]
    dispute_requests.withdraw_dispute(found, actor=MIRA, now=NOW + 60 * DAY)
    dunning_steps.run_dunning(now=NOW + 60 * DAY)
    assert dunning_actions(invoice)[-1] == ("suspend", 305)


def test_a_withdrawn_dispute_does_not_extend_dunning() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    for each in dispute(invoice, {1: None, 2: None}):
        dispute_requests.withdraw_dispute(each, actor=MIRA, now=NOW + 18 * DAY)
    dunning_steps.run_dunning(now=NOW + 18 * DAY)
    assert dunning_actions(invoice) == [("remind", 305)]


def test_disputing_the_overdue_amount_clears_grace_until_it_is_closed(settings: Any) -> None:
    settings.DISPUTE_WINDOW_DAYS = 30
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    dunning_steps.run_dunning(now=NOW + 18 * DAY)
    assert overdue_status.clear_overdue_statuses(now=NOW + 18 * DAY) == 0
    found = dispute(invoice, {1: None, 2: None}, now=NOW + 18 * DAY)
    assert overdue_status.clear_overdue_statuses(now=NOW + 18 * DAY) == 1
    for each in found:
        dispute_requests.withdraw_dispute(each, actor=MIRA, now=NOW + 19 * DAY)
    with tenant_scope(invoice.tenant_id):
        assert account_terms.terms_of(invoice.tenant).account_status == "grace"
    assert overdue_status.clear_overdue_statuses(now=NOW + 19 * DAY) == 0


def test_every_step_of_a_dispute_sends_an_email(
    letters: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    invoice = create_october_invoice_of()
    with tenant_scope(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
    set_billing_details(tenant, replace(ATELIER, email="money@kestrel.example"))
    with django_capture_on_commit_callbacks(execute=True):
        first, second = dispute(invoice, {1: 50, 2: None})
        accept(first)
        decline(second)
    with django_capture_on_commit_callbacks(execute=True):
        (third,) = dispute(invoice, {2: None})
        dispute_requests.withdraw_dispute(third, actor=MIRA, now=NOW)
    assert {to for to, _ in letters} == {"money@kestrel.example"}
    texts = [text for _, text in letters]
    assert [text.splitlines()[0].partition(": ")[2] for text in texts] == [
        "your dispute is open",
        "your dispute is accepted",
        "your dispute is declined",
        "your dispute is open",
        "the dispute is withdrawn",
    ]
    assert "€0.50 of line 1, €1.05 of line 2 of invoice 2026-10-0001 for October 2026" in texts[0]
    assert "Credit note CN-2026-11-0001 credits €0.50" in texts[1]
    assert "it ran all night" in texts[2]


def create_taxed_invoice(settings: Any) -> Invoice:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate()
    return create_october_invoice(200, 105)
