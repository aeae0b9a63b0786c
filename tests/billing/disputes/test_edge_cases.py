"""Disputes together with credit notes, payments, dunning and races."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from billing.domain.disputes import answered_amount_on_hold
from billing.services.funds.accounts import account_terms
from billing.services.invoicing.disputes import dispute_outcomes, dispute_requests
from billing.services.invoicing.disputes.dispute_requests import NotDisputable
from billing.services.payments import disputed_amounts
from billing.services.payments.dunning import dunning_steps, overdue_status
from billing.services.payments.payment_status import payment_status
from ports import payments
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.disputes.test_disputes import (
    accept,
    create_taxed_invoice,
    decline,
    decline_payment,
    dispute,
    dispute_steps,
    dunning_actions,
)
from tests.billing.ledger.ledger_rows import transfers_of
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    charged_amounts,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)
from tests.database import OwnDatabase

DAY = timedelta(days=1)
DUE = NOW + 14 * DAY


@pytest.mark.django_db
def test_credit_for_a_disputed_line_leaves_the_other_lines_collectible() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    dispute(invoice, {1: None})
    issue_note(invoice, {1: 200})
    with tenant_scope(invoice.tenant_id):
        assert (
            disputed_amounts.collectible_amount(reload_invoice(invoice)),
            disputed_amounts.open_disputes_of(reload_invoice(invoice)),
        ) == (105, [])
        assert payment_status(reload_invoice(invoice)).automatic
    dunning_steps.run_dunning(now=DUE + 3 * DAY)
    assert dunning_actions(invoice) == [("remind", 105)]


@pytest.mark.django_db
def test_only_the_uncredited_part_of_a_disputed_line_is_not_collected() -> None:
    invoice = create_october_invoice_of()
    dispute(invoice, {1: 150})
    issue_note(invoice, {1: 120})
    with tenant_scope(invoice.tenant_id):
        assert disputed_amounts.collectible_amount(reload_invoice(invoice)) == 105
    issue_note(invoice, {1: 80})
    sweep_payments(NOW)
    assert charged_amounts(invoice) == [105]


@pytest.mark.django_db
def test_lines_with_an_open_dispute_and_other_lines_can_be_credited() -> None:
    invoice = create_october_invoice_of()
    (first,) = dispute(invoice, {1: 150})
    issue_note(invoice, {2: 50})
    issue_note(invoice, {1: 120})
    issue_note(invoice, {2: 55})
    done = accept(first)
    assert done.credit_note is not None
    assert (done.credit_note.total, dispute_steps(done)[1][2]) == (80, 80)
    assert done.answer == "The dispute is partly accepted. €0.80 of €1.50 is credited."
    assert reload_invoice(invoice).due == 0


@pytest.mark.django_db
def test_accepting_a_credited_dispute_names_the_note_and_books_nothing() -> None:
    invoice = create_october_invoice_of()
    first, second = dispute(invoice, {1: 150, 2: None})
    note = issue_note(invoice)
    before = transfers_of(invoice)
    with pytest.raises(InvalidValue, match=r"€2\.00 of line 1 was already credited; only €0\.00 is left"):
        accept(first, 10)
    for each in (first, second):
        done = accept(each)
        assert (done.status, done.credit_note, done.answer) == (
            "accepted",
            note,
            "The dispute is accepted. The amount was credited before.",
        )
        assert dispute_steps(done)[1][2] == 0
    assert transfers_of(invoice) == before


@pytest.mark.django_db
def test_the_default_answer_names_a_partial_credit() -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: 150})
    done = accept(found, 40)
    assert done.answer == "The dispute is partly accepted. €0.40 of €1.50 is credited."


@pytest.mark.django_db
@pytest.mark.parametrize("length", [150, 151, 500])
def test_a_dispute_answer_is_never_truncated(length: int) -> None:
    invoice = create_october_invoice_of()
    (found,) = dispute(invoice, {1: None}, reason="y" * 500)
    done = accept(found, answer="x" * length)
    assert done.credit_note is not None
    assert done.answer == "x" * length
    text = "Line 1 was disputed. The invoice's page shows the answer."
    assert done.credit_note.reason == ("x" * 150 if length == 150 else text)


@pytest.mark.django_db
def test_credit_for_the_full_amount_due_restores_a_good_account_status() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    dunning_steps.run_dunning(now=DUE + 3 * DAY)
    found = dispute(invoice, {1: None, 2: None})
    assert overdue_status.clear_overdue_statuses(now=DUE + 4 * DAY) == 1
    for each in found:
        accept(each, now=DUE + 4 * DAY)
        with tenant_scope(invoice.tenant_id):
            expected = "grace" if each.line.n == 1 else "good"
            stood = account_terms.terms_of(invoice.tenant).account_status
            assert stood in ("good", expected)
    with tenant_scope(invoice.tenant_id):
        assert account_terms.terms_of(invoice.tenant).account_status == "good"


@pytest.mark.django_db
def test_the_number_of_disputes_per_line_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispute_requests, "MAX_DISPUTES_PER_LINE", 2)
    invoice = create_october_invoice_of()
    for _ in range(2):
        (found,) = dispute(invoice, {1: None})
        dispute_requests.withdraw_dispute(found, actor=MIRA, now=NOW)
    with pytest.raises(NotDisputable, match="Line 1 was already disputed 2 times"):
        dispute(invoice, {1: None, 2: None})
    assert dispute(invoice, {2: None})


@pytest.mark.django_db
def test_the_number_of_queries_grows_by_at_most_three_per_disputed_line(django_assert_max_num_queries: Any) -> None:
    invoice = create_october_invoice_of(*range(101, 131))
    with django_assert_max_num_queries(30 + 3 * 30):
        assert len(dispute(invoice, dict.fromkeys(range(1, 31)))) == 30


@pytest.mark.django_db
def test_an_answer_restarts_the_interval_only_for_the_disputed_part() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    dunning_steps.run_dunning(now=DUE + 3 * DAY)
    decline(found, now=DUE + 4 * DAY)
    dunning_steps.run_dunning(now=DUE + 10 * DAY)  # the rest's day; the disputed line has three days more
    assert dunning_actions(invoice) == [("remind", 105), ("remind", 105)]
    dunning_steps.run_dunning(now=DUE + 17 * DAY)
    assert dunning_actions(invoice)[2:] == [("suspend", 105)]
    dunning_steps.run_dunning(now=DUE + 34 * DAY)
    assert dunning_actions(invoice)[3:] == [("end", 305)]


@pytest.mark.django_db
def test_suspension_waits_the_full_interval_after_a_dispute_answer() -> None:
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    for days in (3, 10, 40):
        dunning_steps.run_dunning(now=DUE + days * DAY)
    accept(found, 50, now=DUE + 40 * DAY)
    for days in (40, 46):
        dunning_steps.run_dunning(now=DUE + days * DAY)
    assert [action for action, _ in dunning_actions(invoice)] == ["remind", "remind"]
    dunning_steps.run_dunning(now=DUE + 47 * DAY)
    assert dunning_actions(invoice)[2:] == [("suspend", 105)]


@pytest.mark.django_db
def test_an_answer_restarts_the_interval_before_a_first_step_without_email(settings: Any) -> None:
    settings.DUNNING_STEPS = ("3:suspend",)
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    decline(found, now=DUE + 3 * DAY)
    dunning_steps.run_dunning(now=DUE + 5 * DAY)
    assert dunning_actions(invoice) == []
    dunning_steps.run_dunning(now=DUE + 6 * DAY)
    assert dunning_actions(invoice) == [("suspend", 305)]


def test_a_line_answered_twice_holds_at_most_its_remaining_amount() -> None:
    assert answered_amount_on_hold([]) == 0
    assert answered_amount_on_hold([(1, 150, 200), (1, 150, 200), (2, 30, 105), (3, -5, 10)]) == 230


@pytest.fixture
def collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.payable_invoices import captured_messages

    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


@pytest.mark.deep
def test_a_dispute_opened_during_dunning_prevents_the_end_of_leases(
    own_database: OwnDatabase, collected: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DUNNING_STEPS = ("3:end",)
    invoice = create_october_invoice_of()
    decline_payment(invoice)
    ended, written, go = [], Event(), Event()
    monkeypatch.setattr(dunning_steps, "_end_all_leases", lambda *requests: ended.append(requests))

    def disputes() -> None:
        try:
            with tenant_scope(invoice.tenant_id):
                dispute(invoice, {1: None, 2: None})
                written.set()
                go.wait(20)
        finally:
            connection.close()

    def presses() -> None:
        try:
            dunning_steps.run_dunning(now=DUE + 3 * DAY)
        finally:
            connection.close()

    early, late = Thread(target=disputes), Thread(target=presses)
    early.start()
    assert written.wait(20)
    late.start()
    late.join(1)
    assert late.is_alive(), "it did not wait"
    go.set()
    for thread in (early, late):
        thread.join(20)
    assert (ended, dunning_actions(invoice)) == ([], [])


@pytest.mark.django_db
def test_dispute_texts_state_what_happens_to_the_amount(settings: Any) -> None:
    invoice = create_taxed_invoice(settings)
    with tenant_scope(invoice.tenant_id):
        due = dispute_outcomes.describe_open_dispute(reload_invoice(invoice), 238, paying=False)
        assert "€2.38 is not collected" in due
        assert "reduce the amount due" in due
        assert "no payment of the invoice starts automatically" in dispute_outcomes.describe_before_dispute(
            reload_invoice(invoice), paying=False
        )
    payment = request_payment(invoice)
    with tenant_scope(invoice.tenant_id):
        assert dispute_outcomes.has_pending_payment(invoice)
        assert "is in progress" in dispute_outcomes.describe_open_dispute(reload_invoice(invoice), 238, paying=True)
        assert "in progress" in dispute_outcomes.describe_before_dispute(reload_invoice(invoice), paying=True)
    process_payment(payment)
    with tenant_scope(invoice.tenant_id):
        assert not dispute_outcomes.has_pending_payment(invoice)
        paid = dispute_outcomes.describe_open_dispute(reload_invoice(invoice), 238, paying=False)
        assert "€2.38 is already paid" in paid
        assert "are added to your balance and can be refunded to your payment card. Amounts" in paid
        with payments.using_gateway(None):
            nobody = dispute_outcomes.describe_open_dispute(reload_invoice(invoice), 238, paying=False)
        assert "are added to your balance. Amounts paid by credits are returned to them." in nobody
        assert "The invoice is paid" in dispute_outcomes.describe_before_dispute(reload_invoice(invoice), paying=False)
    (found,) = dispute(invoice, {1: None})
    done = accept(found)
    assert done.credit_note is not None
    assert dispute_outcomes.describe_credit(done.credit_note) == "€2.38 was added to your balance."


@pytest.mark.django_db
def test_a_dispute_of_a_partly_paid_invoice_names_both_amounts() -> None:
    invoice = create_october_invoice_of()
    issue_note(invoice, {2: 105})
    invoice = reload_invoice(invoice)
    invoice.settled += 50  # as where a balance was drawn
    found = dispute_outcomes.describe_open_dispute(invoice, 200, paying=False)
    assert "€1.50 of €2.00 is not collected" in found
    assert "The rest is already paid" in found
