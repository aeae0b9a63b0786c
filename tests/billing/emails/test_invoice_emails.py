"""Invoice e-mails: recipients, content, retries and delivery."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.core import mail as sent_by
from django.db import DatabaseError, connection

from billing import tasks
from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import BillingDetails, Invoice, QueuedEmail
from billing.services.documents import document_store
from billing.services.emails import email_delivery
from billing.services.emails.email_delivery import EmailNotWaiting
from billing.services.invoicing import billing_details
from billing.services.invoicing.month_close import close_month
from billing.services.notifications import email_queue
from billing.services.rating import lease_rating
from config import metrics
from ports import clock, mail, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Tenant, User
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    captured_messages,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, set_billing_details

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


def send(*, now: Any = NOW) -> list[Any]:
    """Send all due e-mails; return those sent."""
    before = len(sent_by.outbox)
    for _, letter_id, tenant_id in email_delivery.due_emails(now=now):
        email_delivery.deliver_email(letter_id, tenant_id, now=now)
    return sent_by.outbox[before:]


def queued_emails(tenant_id: str) -> list[QueuedEmail]:
    with tenant_scope(tenant_id):
        return list(QueuedEmail.objects.order_by("made_at", "pk"))


def tenant_of(invoice: Invoice) -> Tenant:
    with tenant_scope(invoice.tenant_id):
        return Tenant.objects.get(pk=invoice.tenant_id)


def add_member(invoice: Invoice, email: str = "books@kestrel.example", role: Role = Role.BILLING) -> None:
    user = User.objects.create_user(email)
    with tenant_scope(invoice.tenant_id):
        Member.objects.create(tenant_id=invoice.tenant_id, user=user, role=role, created_at=NOW)


def test_a_final_invoice_is_emailed_once_with_its_pdf() -> None:
    invoice = create_final_invoice()
    set_billing_details(tenant_of(invoice), LUMEN)
    (letter,) = send()
    assert letter.to == ["books@lumen.example"]
    assert letter.subject == f"Invoice {invoice} for October 2026: €2.00"
    assert "is ready: €2.00. Payment is due by 15 November 2026" in letter.body
    assert "we charge your saved payment method automatically." in letter.body
    assert f"/invoices/{invoice.pk}/" in letter.body
    ((name, body, kind),) = letter.attachments
    assert (name, kind) == (f"invoice-{invoice}.pdf", "application/pdf")
    assert body.startswith(b"%PDF")
    assert queued_emails(invoice.tenant_id)[0].pk in letter.extra_headers["Message-ID"]
    assert send(now=LATER) == []
    with tenant_scope(invoice.tenant_id):
        email_queue.enqueue_email("invoice-final", invoice.pk, tenant_id=invoice.tenant_id, now=LATER)
    assert send(now=LATER) == [], "the same letter is put into the queue once"


def test_dates_in_emails_are_in_the_tenants_time_zone() -> None:
    tenant, project = create_customer("Pacific/Auckland")
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    late = utc("2026-10-31 12:30:00")
    lease_rating.rate_tenant_leases(tenant, now=late)
    invoice = close_month.close_period(tenant, "2026-10", now=late)
    assert invoice is not None
    set_billing_details(tenant, LUMEN)
    (letter,) = send(now=late)
    assert "by 15 November 2026" in letter.body, "one day later there than in Greenwich"


def test_without_a_billing_address_owners_and_billing_members_get_the_email() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    add_member(invoice, "mira@kestrel.example", Role.OWNER)
    add_member(invoice, "tomas@kestrel.example", Role.MEMBER)
    assert [letter.to[0] for letter in send()] == ["books@kestrel.example", "mira@kestrel.example"]


def test_a_tenant_with_disabled_emails_gets_none() -> None:
    invoice = create_final_invoice()
    set_billing_details(tenant_of(invoice), LUMEN)
    with tenant_scope(invoice.tenant_id):
        billing_details.set_billing_details(tenant_of(invoice), party=LUMEN, actor=MIRA, now=NOW, emails_enabled=False)
        billing_details.set_billing_details(tenant_of(invoice), party=ATELIER, actor=MIRA, now=NOW)
        assert not BillingDetails.objects.get().emails_enabled, "it stays so"
    process_payment(request_payment(invoice))
    issue_note(reload_invoice(invoice), {1: 50})
    assert send() == []
    rows = queued_emails(invoice.tenant_id)
    assert [(row.undelivered_reason, row.sent_at, row.due_at) for row in rows] == [("unwanted", None, None)] * 3


def test_payments_failures_and_credit_notes_are_announced_by_email() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    send()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    failed = process_payment(request_payment(invoice))
    (letter,) = send()
    assert letter.subject == f"Payment of invoice {invoice} failed"
    assert letter.body.startswith(
        f"€2.00 of invoice {invoice} for October 2026 could not be charged: {failed.reason.rstrip('.')}."
    )
    assert "We will retry it automatically." in letter.body
    process_payment(request_payment(reload_invoice(invoice)))
    (letter,) = send()
    assert letter.subject == f"Invoice {invoice} for October 2026 is paid"
    assert "was paid on 1 November 2026: €2.00." in letter.body
    note = issue_note(reload_invoice(invoice), {1: 50}, why="the GPU was slow")
    (letter,) = send()
    assert letter.subject == f"Credit note {note}: €0.50 of invoice {invoice}"
    assert ": the GPU was slow.\n\n€0.50 was added to your balance, which pays your next charges." in letter.body
    assert letter.attachments[0][0] == f"credit-note-{note}.pdf"


def test_a_failed_payment_followed_by_a_success_sends_no_failure_email() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    send()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    process_payment(request_payment(reload_invoice(invoice)))
    assert [letter.subject for letter in send()] == [f"Invoice {invoice} for October 2026 is paid"]
    assert [row.undelivered_reason for row in queued_emails(invoice.tenant_id)] == ["", "outdated", ""]


def test_an_email_states_that_a_payment_is_not_retried_automatically() -> None:
    with payments.using_gateway(None):
        invoice = create_final_invoice()
    add_member(invoice)
    send()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    (letter,) = send()
    assert "It is not retried automatically." in letter.body


def test_an_email_about_a_settled_invoice_requests_no_payment() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    issue_note(invoice, {1: 200})
    final, note = send()
    assert "No payment is needed: the invoice is settled." in final.body
    assert "€2.00 was deducted from the amount due." in note.body


def test_without_a_gateway_the_email_only_states_the_due_date() -> None:
    with payments.using_gateway(None):
        invoice = create_final_invoice()
        add_member(invoice)
        issue_note(invoice, {1: 50})
        final, _ = send()
    assert "€1.50 is due by 15 November 2026.\n" in final.body


def test_a_failed_email_is_retried_and_no_recipient_gets_it_twice() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    add_member(invoice, "mira@kestrel.example", Role.OWNER)
    real, now = mail.send_now, NOW

    def refuses(*, to: str, **more: Any) -> None:
        if to == "mira@kestrel.example":
            raise OSError("550 no such mailbox")
        real(to=to, **more)

    with mock.patch.object(mail, "send_now", refuses):
        assert [letter.to for letter in send(now=now)] == [["books@kestrel.example"]]
        assert send(now=now) == []
        now += timedelta(minutes=1)
        assert send(now=now) == []
    (row,) = queued_emails(invoice.tenant_id)
    assert row.last_error == "mira@kestrel.example: 550 no such mailbox"
    assert (row.attempts, row.sent_at) == (2, None)
    now += timedelta(minutes=2)
    assert [letter.to for letter in send(now=now)] == [["mira@kestrel.example"]]
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.sent_at, row.last_error, row.due_at) == (now, "", None)


def test_a_worker_crash_loses_no_email() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    with (
        mock.patch.object(email_delivery, "compose_email", side_effect=DatabaseError("gone")),
        pytest.raises(DatabaseError),
    ):
        send()
    assert send(now=NOW + timedelta(minutes=4)) == [], "its claim still holds"
    assert len(send(now=NOW + timedelta(minutes=6))) == 1


def test_sending_an_email_stops_after_the_maximum_number_of_tries() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    now = NOW
    with mock.patch.object(mail, "send_now", side_effect=OSError("away")):
        for _ in range(email_delivery.MAX_TRIES):
            now += email_delivery.MAX_BACKOFF + email_delivery.CLAIM
            assert len(email_delivery.due_emails(now=now)) == 1
            send(now=now)
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.attempts, row.due_at, row.sent_at) == (email_delivery.MAX_TRIES, None, None)
    assert row.last_error.endswith("away")
    assert row.undelivered_reason == "given_up"
    assert (email_gauges()["gpubroker_emails_pending"], email_gauges()["gpubroker_emails_undeliverable"]) == (0, 1)
    email_delivery.requeue_email(row, actor=MIRA, now=now)
    assert (email_gauges()["gpubroker_emails_pending"], email_gauges()["gpubroker_emails_undeliverable"]) == (1, 0)
    assert len(send(now=now)) == 1
    with pytest.raises(EmailNotWaiting, match="cannot be retried"):
        email_delivery.requeue_email(row, actor=MIRA, now=now)
    with tenant_scope(invoice.tenant_id):
        assert AuditEvent.objects.get(action="notification.resend").subject_id == row.pk


def test_an_email_that_fails_to_render_is_retried_and_then_left_to_operators() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    now, (hint,) = NOW, email_delivery.due_emails(now=NOW)
    with mock.patch.object(document_store, "render_pdf", side_effect=KeyError("a glyph")):
        for n in range(1, email_delivery.MAX_TRIES + 1):
            with clock.frozen_at(now):
                tasks.send_email(*hint[1:])
            (row,) = queued_emails(invoice.tenant_id)
            assert (row.attempts, row.last_error) == (n, "The e-mail could not be written or sent: KeyError.")
            now = row.due_at or now
    assert (row.undelivered_reason, row.due_at, row.sent_at, row.claimed_until) == ("given_up", None, None, None)
    with mock.patch.object(email_delivery, "_claim", side_effect=KeyError), pytest.raises(KeyError):
        tasks.send_email(*hint[1:])
    email_delivery.requeue_email(row, actor=MIRA, now=now)
    assert len(send(now=now)) == 1


def test_a_crash_on_the_last_try_leaves_the_email_to_operators() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    now = NOW
    with mock.patch.object(email_delivery, "compose_email", side_effect=KeyboardInterrupt):
        for _ in range(email_delivery.MAX_TRIES):
            with pytest.raises(KeyboardInterrupt):
                send(now=now)
            now += email_delivery.MAX_BACKOFF
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.undelivered_reason, len(email_delivery.due_emails(now=now))) == ("", 1)
    assert send(now=now) == []
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.undelivered_reason, row.due_at, email_delivery.due_emails(now=now)) == ("given_up", None, [])


def test_an_email_without_a_recipient_is_unsent_until_an_operator_requeues_it() -> None:
    invoice = create_final_invoice()
    assert send() == []
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.undelivered_reason, row.sent_at, row.due_at) == ("no_recipient", None, None)
    assert email_gauges()["gpubroker_emails_undeliverable"] == 1
    add_member(invoice)
    email_delivery.requeue_email(row, actor=MIRA, now=LATER)
    assert len(send(now=LATER)) == 1
    (row,) = queued_emails(invoice.tenant_id)
    assert (row.undelivered_reason, row.sent_at) == ("", LATER)


def test_pdfs_are_rendered_and_emails_sent_outside_any_transaction() -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    issue_note(invoice, {1: 50})
    open_ = len(connection.savepoint_ids)
    seen = list[tuple[str, int]]()

    def spied(module: Any, name: str) -> Any:
        real = getattr(module, name)

        def noted(*reported: Any, **more: Any) -> Any:
            seen.append((name, len(connection.savepoint_ids) - open_))
            return real(*reported, **more)

        return mock.patch.object(module, name, noted)

    with spied(document_store, "render_pdf"), spied(mail, "send_now"):
        assert len(send()) == 2
    assert seen == [("render_pdf", 0), ("send_now", 0)] * 2


def email_gauges() -> dict[str, float]:
    return {each.name: each.samples[0].value for each in metrics.database_gauges()}


def test_one_of_two_concurrent_workers_sends_an_email(django_capture_on_commit_callbacks: Any) -> None:
    invoice = create_final_invoice()
    add_member(invoice)
    (hint,) = email_delivery.due_emails(now=NOW)
    real, twice = email_delivery._send, []

    def slow(letter: QueuedEmail, written: Any) -> str:
        email_delivery.deliver_email(hint[1], hint[2], now=NOW)  # another worker, meanwhile
        twice.append(letter)
        return real(letter, written)

    with mock.patch.object(email_delivery, "_send", slow):
        email_delivery.deliver_email(hint[1], hint[2], now=NOW)
    assert len(twice) == 1
    assert len(sent_by.outbox) == 1
