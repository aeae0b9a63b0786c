"""Letters about invoices: each once, to whom it may concern, with the paper, in words that one can act on."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.core import mail as sent_by
from django.db import DatabaseError, connection

from billing import tasks
from billing.gateways.simulated import Ill, SimulatedGateway
from billing.models import BillingDetails, Invoice, Letter
from billing.services import closing, rating
from billing.services.papers import keeping
from billing.services.post import delivering, queue
from billing.services.post.delivering import NotUnsent
from billing.services.tax import details
from config import metrics
from ports import clock, mail, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Tenant, User
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.histories import EURO, HOUR, at, customer, ran, sold
from tests.billing.payments.bills import MIRA, NOW, bill, collect, fresh, heard, ill, pay
from tests.billing.tax.papers import ATELIER, LUMEN, told

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.through(SimulatedGateway()), heard():
        yield


def send(*, now: Any = NOW) -> list[Any]:
    """Let a worker send what waits; return the mails of it."""
    before = len(sent_by.outbox)
    for _, letter_id, tenant_id in delivering.due(now=now):
        delivering.deliver(letter_id, tenant_id, now=now)
    return sent_by.outbox[before:]


def letters(tenant_id: str) -> list[Letter]:
    with as_tenant(tenant_id):
        return list(Letter.objects.order_by("made_at", "pk"))


def tenant_of(invoice: Invoice) -> Tenant:
    with as_tenant(invoice.tenant_id):
        return Tenant.objects.get(pk=invoice.tenant_id)


def payer(invoice: Invoice, email: str = "books@kestrel.example", role: Role = Role.BILLING) -> None:
    user = User.objects.create_user(email)
    with as_tenant(invoice.tenant_id):
        Member.objects.create(tenant_id=invoice.tenant_id, user=user, role=role, created_at=NOW)


def test_a_final_invoice_comes_with_its_paper_once() -> None:
    invoice = bill()
    told(tenant_of(invoice), LUMEN)
    (letter,) = send()
    assert letter.to == ["books@lumen.example"]
    assert letter.subject == f"Invoice {invoice} for October 2026: €2.00"
    assert "comes to €2.00. It is to be paid by 15 November 2026" in letter.body
    assert "it is collected from the way to pay that you left." in letter.body
    assert f"/invoices/{invoice.pk}/" in letter.body
    ((name, body, kind),) = letter.attachments
    assert (name, kind) == (f"invoice-{invoice}.pdf", "application/pdf")
    assert body.startswith(b"%PDF")
    assert letters(invoice.tenant_id)[0].pk in letter.extra_headers["Message-ID"]
    assert send(now=LATER) == []
    with as_tenant(invoice.tenant_id):
        queue.put("invoice-final", invoice.pk, tenant_id=invoice.tenant_id, now=LATER)
    assert send(now=LATER) == [], "the same letter is put into the queue once"


def test_days_are_the_tenants_own() -> None:
    tenant, project = customer("Pacific/Auckland")
    ran(project, sold(2 * EURO), at("2026-10-05 00:00:00"), HOUR)
    late = at("2026-10-31 12:30:00")
    rating.rate_tenant(tenant, now=late)
    invoice = closing.close_period(tenant, "2026-10", now=late)
    assert invoice is not None
    told(tenant, LUMEN)
    (letter,) = send(now=late)
    assert "by 15 November 2026" in letter.body, "one day later there than in Greenwich"


def test_without_an_address_owners_and_payers_are_written_to() -> None:
    invoice = bill()
    payer(invoice)
    payer(invoice, "mira@kestrel.example", Role.OWNER)
    payer(invoice, "tomas@kestrel.example", Role.MEMBER)
    assert [letter.to[0] for letter in send()] == ["books@kestrel.example", "mira@kestrel.example"]


def test_who_wants_no_letters_gets_none() -> None:
    invoice = bill()
    told(tenant_of(invoice), LUMEN)
    with as_tenant(invoice.tenant_id):
        details.tell(tenant_of(invoice), told=LUMEN, actor=MIRA, now=NOW, letters=False)
        details.tell(tenant_of(invoice), told=ATELIER, actor=MIRA, now=NOW)
        assert not BillingDetails.objects.get().letters, "it stays so"
    collect(pay(invoice))
    credit(fresh(invoice), {1: 50})
    assert send() == []
    rows = letters(invoice.tenant_id)
    assert [(row.unsent, row.sent_at, row.due_at) for row in rows] == [("unwanted", None, None)] * 3


def test_paid_and_not_collected_and_given_back_are_told() -> None:
    invoice = bill()
    payer(invoice)
    send()
    ill(invoice, Ill.DECLINED)
    failed = collect(pay(invoice))
    (letter,) = send()
    assert letter.subject == f"Invoice {invoice} could not be collected"
    assert letter.body.startswith(
        f"€2.00 of invoice {invoice} for October 2026 could not be collected: {failed.reason.rstrip('.')}."
    )
    assert "It is tried again by itself on another day." in letter.body
    collect(pay(fresh(invoice)))
    (letter,) = send()
    assert letter.subject == f"Invoice {invoice} for October 2026 is paid"
    assert "is paid since 1 November 2026: €2.00." in letter.body
    note = credit(fresh(invoice), {1: 50}, why="the card was slow")
    (letter,) = send()
    assert letter.subject == f"Credit note {note}: €0.50 of invoice {invoice}"
    assert (
        "back: the card was slow.\n\n€0.50 went to your balance, which pays what comes next." in letter.body
    )
    assert letter.attachments[0][0] == f"credit-note-{note}.pdf"


def test_a_failure_that_was_paid_meanwhile_is_not_told() -> None:
    invoice = bill()
    payer(invoice)
    send()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    collect(pay(fresh(invoice)))
    assert [letter.subject for letter in send()] == [f"Invoice {invoice} for October 2026 is paid"]
    assert [row.unsent for row in letters(invoice.tenant_id)] == ["", "overtaken", ""]


def test_what_is_not_tried_again_by_itself_says_so() -> None:
    with payments.through(None):
        invoice = bill()
    payer(invoice)
    send()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    (letter,) = send()
    assert "It is not tried again by itself." in letter.body


def test_what_is_settled_already_asks_for_nothing() -> None:
    invoice = bill()
    payer(invoice)
    credit(invoice, {1: 200})
    final, note = send()
    assert "Nothing of it is to be paid: it is settled already." in final.body
    assert "€2.00 less is due on the invoice." in note.body


def test_where_nobody_collects_it_is_only_said_by_when() -> None:
    with payments.through(None):
        invoice = bill()
        payer(invoice)
        credit(invoice, {1: 50})
        final, _ = send()
    assert "€1.50 of it are to be paid by 15 November 2026.\n" in final.body


def test_a_mail_server_that_is_away_is_asked_again_and_nobody_gets_it_twice() -> None:
    invoice = bill()
    payer(invoice)
    payer(invoice, "mira@kestrel.example", Role.OWNER)
    real, now = mail.deliver, NOW

    def refuses(*, to: str, **more: Any) -> None:
        if to == "mira@kestrel.example":
            raise OSError("550 no such mailbox")
        real(to=to, **more)

    with mock.patch.object(mail, "deliver", refuses):
        assert [letter.to for letter in send(now=now)] == [["books@kestrel.example"]]
        assert send(now=now) == []
        now += timedelta(minutes=1)
        assert send(now=now) == []
    (row,) = letters(invoice.tenant_id)
    assert row.trouble == "mira@kestrel.example: 550 no such mailbox"
    assert (row.tries, row.sent_at) == (2, None)
    now += timedelta(minutes=2)
    assert [letter.to for letter in send(now=now)] == [["mira@kestrel.example"]]
    (row,) = letters(invoice.tenant_id)
    assert (row.sent_at, row.trouble, row.due_at) == (now, "", None)


def test_a_worker_that_dies_loses_no_letter() -> None:
    invoice = bill()
    payer(invoice)
    with (
        mock.patch.object(delivering, "compose", side_effect=DatabaseError("gone")),
        pytest.raises(DatabaseError),
    ):
        send()
    assert send(now=NOW + timedelta(minutes=4)) == [], "its claim still holds"
    assert len(send(now=NOW + timedelta(minutes=6))) == 1


def test_after_days_nobody_tries_any_longer() -> None:
    invoice = bill()
    payer(invoice)
    now = NOW
    with mock.patch.object(mail, "deliver", side_effect=OSError("away")):
        for _ in range(delivering.TRIES):
            now += delivering.LONGEST_WAIT + delivering.CLAIM
            assert len(delivering.due(now=now)) == 1
            send(now=now)
    (row,) = letters(invoice.tenant_id)
    assert (row.tries, row.due_at, row.sent_at) == (delivering.TRIES, None, None)
    assert row.trouble.endswith("away")
    assert row.unsent == "given_up"
    assert (figures()["gpubroker_letters_waiting"], figures()["gpubroker_letters_given_up"]) == (0, 1)
    delivering.try_again(row, actor=MIRA, now=now)
    assert (figures()["gpubroker_letters_waiting"], figures()["gpubroker_letters_given_up"]) == (1, 0)
    assert len(send(now=now)) == 1
    with pytest.raises(NotUnsent, match="waits for nobody"):
        delivering.try_again(row, actor=MIRA, now=now)
    with as_tenant(invoice.tenant_id):
        assert AuditEvent.objects.get(action="letter.again").subject_id == row.pk


def test_a_letter_that_cannot_be_written_stays_in_the_queue_and_is_then_left_to_people() -> None:
    invoice = bill()
    payer(invoice)
    now, (hint,) = NOW, delivering.due(now=NOW)
    with mock.patch.object(keeping, "printed", side_effect=KeyError("a glyph")):
        for n in range(1, delivering.TRIES + 1):
            with clock.standing_at(now):
                tasks.deliver(*hint[1:])
            (row,) = letters(invoice.tenant_id)
            assert (row.tries, row.trouble) == (n, "It could not be written or sent: KeyError.")
            now = row.due_at or now
    assert (row.unsent, row.due_at, row.sent_at, row.claimed_until) == ("given_up", None, None, None)
    with mock.patch.object(delivering, "_claim", side_effect=KeyError), pytest.raises(KeyError):
        tasks.deliver(*hint[1:])
    delivering.try_again(row, actor=MIRA, now=now)
    assert len(send(now=now)) == 1


def test_a_worker_that_dies_over_the_last_try_leaves_the_letter_to_people() -> None:
    invoice = bill()
    payer(invoice)
    now = NOW
    with mock.patch.object(delivering, "compose", side_effect=KeyboardInterrupt):
        for _ in range(delivering.TRIES):
            with pytest.raises(KeyboardInterrupt):
                send(now=now)
            now += delivering.LONGEST_WAIT
    (row,) = letters(invoice.tenant_id)
    assert (row.unsent, len(delivering.due(now=now))) == ("", 1)
    assert send(now=now) == []
    (row,) = letters(invoice.tenant_id)
    assert (row.unsent, row.due_at, delivering.due(now=now)) == ("given_up", None, [])


def test_a_letter_to_nobody_was_not_sent_and_waits_for_people() -> None:
    invoice = bill()
    assert send() == []
    (row,) = letters(invoice.tenant_id)
    assert (row.unsent, row.sent_at, row.due_at) == ("nobody", None, None)
    assert figures()["gpubroker_letters_given_up"] == 1
    payer(invoice)
    delivering.try_again(row, actor=MIRA, now=LATER)
    assert len(send(now=LATER)) == 1
    (row,) = letters(invoice.tenant_id)
    assert (row.unsent, row.sent_at) == ("", LATER)


def test_papers_are_laid_out_and_mails_sent_with_no_transaction_open() -> None:
    invoice = bill()
    payer(invoice)
    credit(invoice, {1: 50})
    open_ = len(connection.savepoint_ids)
    seen = list[tuple[str, int]]()

    def spied(module: Any, name: str) -> Any:
        real = getattr(module, name)

        def noted(*told: Any, **more: Any) -> Any:
            seen.append((name, len(connection.savepoint_ids) - open_))
            return real(*told, **more)

        return mock.patch.object(module, name, noted)

    with spied(keeping, "printed"), spied(mail, "deliver"):
        assert len(send()) == 2
    assert seen == [("printed", 0), ("deliver", 0)] * 2


def figures() -> dict[str, float]:
    return {each.name: each.samples[0].value for each in metrics.money()}


def test_of_two_workers_one_sends(django_capture_on_commit_callbacks: Any) -> None:
    invoice = bill()
    payer(invoice)
    (hint,) = delivering.due(now=NOW)
    real, twice = delivering._send, []

    def slow(letter: Letter, written: Any) -> str:
        delivering.deliver(hint[1], hint[2], now=NOW)  # another worker, meanwhile
        twice.append(letter)
        return real(letter, written)

    with mock.patch.object(delivering, "_send", slow):
        delivering.deliver(hint[1], hint[2], now=NOW)
    assert len(twice) == 1
    assert len(sent_by.outbox) == 1
