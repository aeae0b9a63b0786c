"""Refunds to the card: limits, retries, returns and ledger entries."""

from datetime import timedelta
from unittest import mock

import pytest
from django.db import DatabaseError, transaction

from billing import tasks
from billing.domain.payment_retries import MAX_UNEXPECTED_FAILURES
from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import AccountTerms, PaymentRefund, PaymentTerms, Refund
from billing.services.ledger import account_entries, invariant_checks, ledger_balances, missing_postings
from billing.services.payments.refunds import refund_creation, refund_submission
from billing.services.payments.refunds.refund_creation import NotRefundable
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from ports import clock, payments
from ports.payments import Declined, Succeeded
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import create_november_invoice
from tests.billing.ledger.ledger_rows import transfers_of
from tests.billing.payments.payable_invoices import MIRA, NOW, fail_next_charges, request_payment
from tests.billing.refunds.refund_setup import (
    balance_of,
    create_paid_invoice,
    payment_of,
    process_refund,
    refunded_amounts,
    refunds_of,
    reload_refund,
    request_refund,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_credit_is_refunded_to_the_card_and_booked() -> None:
    invoice = create_paid_invoice()
    made = request_refund(invoice, 100)
    assert (made.status, balance_of(invoice), refunded_amounts(invoice)) == ("pending", 20, [])
    done = process_refund(made)
    assert (done.status, done.reference[:6], balance_of(invoice), refunded_amounts(invoice)) == (
        "succeeded",
        "simre_",
        20,
        [100],
    )
    assert ("refund", "wallet_paid", "cash", 100) in transfers_of(invoice)
    with tenant_scope(invoice.tenant_id):
        mark = PaymentRefund.objects.get()
        rows = list(AuditEvent.objects.filter(action__startswith="refund.").order_by("pk"))
    assert (mark.pk, mark.minor, mark.status) == (done.reference, 100, "succeeded")
    assert [each.action for each in rows] == ["refund.open", "refund.succeed"]
    assert (rows[0].detail["reason"], rows[0].detail["minor"]) == ("charged twice elsewhere", 100)
    with staff_scope():
        assert ledger_balances.recomputed_trial_balance()[1] == ()
        assert [proof.name for proof in invariant_checks.check_invariants(now=NOW + HOUR) if not proof.holds] == []


def test_the_account_statement_lists_refunds_and_returned_refunds() -> None:
    invoice = create_paid_invoice()
    process_refund(request_refund(invoice, 100, now=NOW + HOUR), now=NOW + HOUR)
    with tenant_scope(invoice.tenant_id):
        account = account_entries.read_account(invoice.tenant_id, "EUR", since=NOW - 99 * HOUR, until=NOW + 99 * HOUR)
    assert (account.entries[-1].text, account.entries[-1].kept) == (
        f"Refund of invoice {invoice} to your payment card",
        -100,
    )
    assert account.closing_kept == balance_of(invoice) == 20
    refund_creation.credit_returned_refund(refunds_of(invoice)[0], now=NOW + 2 * HOUR)
    with tenant_scope(invoice.tenant_id):
        account = account_entries.read_account(invoice.tenant_id, "EUR", since=NOW, until=NOW + 99 * HOUR)
    assert (account.entries[-1].text, account.entries[-1].kept) == (
        f"Failed refund of invoice {invoice} to your payment card",
        100,
    )


@pytest.mark.parametrize(
    ("minor", "credited", "why"),
    [
        (0, 120, "The refund amount is zero"),
        (-5, 120, "The refund amount is zero"),
        (306, 120, r"charged €3.05, of which €0.00 was refunded: €3.05 is left"),
        (121, 120, r"Of the invoice €1.20 was given back to the balance"),
        (1, 0, r"Of the invoice €0.00 was given back to the balance"),
    ],
)
def test_a_refund_beyond_the_payment_or_its_credit_is_refused_and_not_booked(
    minor: int, credited: int, why: str
) -> None:
    invoice = create_paid_invoice(credited=credited)
    before = transfers_of(invoice)
    with pytest.raises(InvalidValue, match=why):
        request_refund(invoice, minor)
    assert (refunds_of(invoice), transfers_of(invoice), balance_of(invoice)) == ([], before, credited)


def test_credit_that_settled_another_invoice_is_not_refundable() -> None:
    invoice = create_paid_invoice()
    create_november_invoice(invoice, 100)
    with pytest.raises(InvalidValue, match=r"€0.20 of the tenant's balance is available"):
        request_refund(invoice, 21)
    assert process_refund(request_refund(invoice, 20)).status == "succeeded"


def test_a_refund_is_limited_to_the_available_funds_of_a_prepaid_tenant() -> None:
    invoice = create_paid_invoice()
    with tenant_scope(invoice.tenant_id):
        AccountTerms.objects.create(tenant_id=invoice.tenant_id, payment=PaymentTerms.PREPAID, since=NOW)
    with mock.patch("billing.services.funds.wallets.wallet_balances.wallet_funds") as funds:
        funds.return_value.available = 30
        with pytest.raises(InvalidValue, match=r"€0.30 of the tenant's balance is available"):
            request_refund(invoice, 31)
        assert request_refund(invoice, 30).minor == 30


def test_partial_refunds_never_exceed_the_credited_amount() -> None:
    invoice = create_paid_invoice()
    for n in range(3):
        process_refund(request_refund(invoice, 40, seen=40 * n))
    assert (refunded_amounts(invoice), balance_of(invoice)) == ([40, 40, 40], 0)
    with pytest.raises(InvalidValue, match=r"€1.20 of that went back to the payment card"):
        request_refund(invoice, 1, seen=120)


def test_a_repeated_refund_request_refunds_once() -> None:
    invoice = create_paid_invoice()
    made = request_refund(invoice, 40)
    with pytest.raises(NotRefundable, match=r"Refund ref_\w+ of €0.40 is pending"):
        request_refund(invoice, 40)
    process_refund(made)
    process_refund(made)
    with pytest.raises(NotRefundable, match=r"€0.40 of this payment has been refunded, not €0.00"):
        request_refund(invoice, 40)
    assert (refunded_amounts(invoice), balance_of(invoice)) == ([40], 80)


def test_a_refund_requires_a_reason() -> None:
    invoice = create_paid_invoice()
    with pytest.raises(InvalidValue):
        request_refund(invoice, 40, why=" ")
    assert refunds_of(invoice) == []


def test_a_pending_payment_or_one_of_a_removed_gateway_is_not_refundable() -> None:
    invoice = create_paid_invoice()
    with payments.using_gateway(None), pytest.raises(NotRefundable, match="no longer configured here"):
        request_refund(invoice, 40)
    from tests.billing.payments.payable_invoices import create_final_invoice

    waits = request_payment(create_final_invoice())
    with pytest.raises(NotRefundable, match="is pending"):
        refund_creation.open_refund(waits, minor=1, seen=0, why="x", actor=MIRA, now=NOW)


def test_refunds_made_at_the_gateway_count_against_the_limit() -> None:
    invoice = create_paid_invoice()
    was = payment_of(invoice)
    with tenant_scope(invoice.tenant_id):
        for n, status in enumerate(("succeeded", "pending", "failed", "canceled")):
            PaymentRefund.objects.create(
                id=f"re_{n}", tenant_id=invoice.tenant_id, payment=was, status=status, rank=1, minor=30,
                made_at=NOW, seen_at=NOW,
            )  # fmt: skip
        assert refund_creation.refund_limits(was, now=NOW).refunded == 60
    with pytest.raises(InvalidValue, match=r"€0.60 of that went back"):
        request_refund(invoice, 61, seen=60)
    assert process_refund(request_refund(invoice, 60, seen=60)).status == "succeeded"


@pytest.mark.parametrize("silence", [GatewayFault.LOST, GatewayFault.UNREACHABLE])
def test_an_unanswered_refund_is_retried_and_refunded_once(silence: GatewayFault) -> None:
    invoice = create_paid_invoice()
    fail_next_charges(invoice, silence)
    waits = process_refund(request_refund(invoice, 40))
    assert (waits.status, waits.last_error != "") == ("pending", True)
    later = NOW + HOUR
    assert refund_submission.REFUND_TRANSACTIONS.due(now=later) == [("billing.refund", waits.pk, waits.tenant_id)]
    assert process_refund(waits, now=later).status == "succeeded"
    assert (refunded_amounts(invoice), balance_of(invoice)) == ([40], 80)


def test_a_declined_refund_restores_the_balance() -> None:
    invoice = create_paid_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    done = process_refund(request_refund(invoice, 40))
    assert (done.status, done.code, balance_of(invoice), refunded_amounts(invoice)) == (
        "declined",
        "not_taken_back",
        120,
        [],
    )
    assert ("refund", "cash", "wallet_paid", 40) in transfers_of(invoice)
    assert process_refund(request_refund(invoice, 40)).status == "succeeded"


def test_a_stuck_refund_is_retried_by_an_operator() -> None:
    invoice = create_paid_invoice()
    fail_next_charges(invoice, GatewayFault.REJECTED)
    stuck = process_refund(request_refund(invoice, 40))
    assert (stuck.status, balance_of(invoice)) == ("stuck", 80)
    with pytest.raises(NotRefundable, match="is stuck"):
        request_refund(invoice, 40)
    refund_creation.retry_refund(stuck, actor=MIRA, now=NOW + HOUR)
    with pytest.raises(NotRefundable, match="is pending"):
        refund_creation.retry_refund(stuck, actor=MIRA, now=NOW + HOUR)
    assert process_refund(stuck, now=NOW + HOUR).status == "succeeded"
    assert refunded_amounts(invoice) == [40]


def test_a_refund_returned_by_the_bank_is_credited_to_the_balance_once() -> None:
    invoice = create_paid_invoice()
    done = process_refund(request_refund(invoice, 40))
    assert refund_creation.credit_returned_refund(done, now=NOW + HOUR)
    assert not refund_creation.credit_returned_refund(done, now=NOW + HOUR)
    assert balance_of(invoice) == 120
    with tenant_scope(invoice.tenant_id):
        PaymentRefund.objects.filter(pk=done.reference).update(status="failed")
        assert refund_creation.refund_limits(payment_of(invoice), now=NOW).refunded == 0
    with staff_scope():
        assert ledger_balances.recomputed_trial_balance()[1] == ()


def test_a_crash_while_booking_a_refund_refunds_once() -> None:
    invoice = create_paid_invoice()
    made = request_refund(invoice, 40)
    with (
        mock.patch.object(REFUND_TRANSACTIONS, "book", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
        transaction.atomic(),
    ):
        process_refund(made)
    assert reload_refund(made).status == "pending"
    assert process_refund(made, now=NOW + HOUR).status == "succeeded"
    assert (refunded_amounts(invoice), balance_of(invoice)) == ([40], 80)


def test_a_refund_that_keeps_failing_unexpectedly_becomes_stuck() -> None:
    invoice = create_paid_invoice()
    made, now = request_refund(invoice, 40), NOW
    with mock.patch.object(SimulatedGateway, "refund", side_effect=ZeroDivisionError("odd")):
        for _ in range(MAX_UNEXPECTED_FAILURES):
            with clock.frozen_at(now):
                tasks.refund(made.pk, made.tenant_id)
            now += 2 * HOUR
    assert (reload_refund(made).status, reload_refund(made).code) == ("stuck", "unforeseen")
    odd = mock.patch.object(REFUND_TRANSACTIONS, "claim", side_effect=ZeroDivisionError)
    with clock.frozen_at(now), odd, pytest.raises(ZeroDivisionError):
        tasks.refund("ref_gone", made.tenant_id)


def test_a_refund_first_reported_by_the_gateway_is_recorded_once() -> None:
    invoice = create_paid_invoice()
    made = request_refund(invoice, 40)
    values = {"payment": payment_of(invoice), "minor": 40, "made_at": NOW, "seen_at": NOW, "rank": 1}
    with tenant_scope(invoice.tenant_id):
        PaymentRefund.objects.create(id="re_1", tenant_id=invoice.tenant_id, status="pending", **values)
        row = Refund.objects.select_related("payment__invoice").get()
    REFUND_TRANSACTIONS.settle(row, Succeeded("re_1"), NOW)
    REFUND_TRANSACTIONS.settle(row, Declined("late", "late"), NOW)
    with tenant_scope(invoice.tenant_id):
        assert PaymentRefund.objects.get().status == "succeeded"
    assert (reload_refund(made).status, balance_of(invoice)) == ("succeeded", 80)


def test_missing_ledger_entries_of_a_refund_are_posted_later() -> None:
    invoice = create_paid_invoice()
    with mock.patch("billing.services.ledger.posting.post_refunds"):
        made = request_refund(invoice, 40)
    assert balance_of(invoice) == 120
    assert missing_postings.post_missing(now=NOW + HOUR) == 1
    fail_next_charges(invoice, GatewayFault.DECLINED)
    with mock.patch("billing.services.ledger.posting.reverse_refunds"):
        process_refund(made)
    assert balance_of(invoice) == 80
    assert missing_postings.post_missing(now=NOW + HOUR) == 1
    assert (balance_of(invoice), missing_postings.post_missing(now=NOW + HOUR)) == (120, 0)


# What PostgreSQL keeps


@pytest.mark.parametrize("change", [{"minor": 1}, {"status": "declined"}, {"payment_id": "pay_x"}, {"why": "other"}])
def test_a_settled_refund_cannot_be_changed(change: dict[str, object]) -> None:
    invoice = create_paid_invoice()
    done = process_refund(request_refund(invoice, 40))
    refused = pytest.raises(DatabaseError, match=r"stays what it is|violates")
    with refused, transaction.atomic(), tenant_scope(invoice.tenant_id):
        Refund.objects.filter(pk=done.pk).update(**change)


def test_postgresql_refuses_refunds_above_the_payment() -> None:
    invoice = create_paid_invoice()
    was = payment_of(invoice)
    process_refund(request_refund(invoice, 40))
    row = {"tenant_id": invoice.tenant_id, "payment": was, "currency": "EUR", "gateway": "simulated", "why": "x",
           "opened_at": NOW, "opened_by": "x", "due_at": NOW}  # fmt: skip
    refused = pytest.raises(DatabaseError, match="no more than it took")
    with refused, transaction.atomic(), tenant_scope(invoice.tenant_id):
        Refund.objects.create(**row, minor=266)
    with tenant_scope(invoice.tenant_id):
        assert Refund.objects.create(**row, minor=265).minor == 265
