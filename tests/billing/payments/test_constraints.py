"""PostgreSQL constraints on payments and paid invoices."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from billing.gateways.simulated import GatewayFault
from billing.models import Invoice, Payment
from billing.models.payments import PaymentStatus
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    NOW,
    create_draft_invoice,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = pytest.mark.django_db


def assert_refused(invoice: Invoice, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(invoice.tenant_id), pytest.raises(DatabaseError, match=match), transaction.atomic():
        attack()


def payment_write(invoice: Invoice, **otherwise: Any) -> Callable[[], Payment]:
    fields = {"tenant_id": invoice.tenant_id, "minor": invoice.total, "currency": invoice.currency}
    waits = {"gateway": "simulated", "opened_at": NOW, "due_at": NOW}
    return lambda: Payment.objects.create(invoice=invoice, **fields | waits | otherwise)


def test_a_second_payment_beside_a_pending_or_succeeded_one_is_refused() -> None:
    waiting, paid = create_final_invoice(), create_final_invoice()
    request_payment(waiting)
    process_payment(request_payment(paid))
    assert_refused(waiting, payment_write(waiting), "one_payment_per_invoice")
    assert_refused(paid, payment_write(paid), "one_payment_per_invoice")


@pytest.mark.parametrize("odd", [{"minor": 199}, {"minor": 201}, {"minor": 0}, {"minor": -200}, {"currency": "USD"}])
def test_a_payment_covers_the_full_amount_due(odd: dict[str, Any]) -> None:
    invoice = create_final_invoice()
    assert_refused(invoice, payment_write(invoice, **odd), "all that is due|payment_of_something")


def test_a_draft_or_zero_invoice_cannot_have_a_payment() -> None:
    unfinished, nothing = create_draft_invoice(), create_final_invoice(0)
    assert_refused(unfinished, payment_write(unfinished), "all that is due")
    assert_refused(nothing, payment_write(nothing), "payment_of_something")


def test_an_invoice_of_another_tenant_cannot_have_our_payment() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    assert_refused(ours, payment_write(theirs, tenant_id=ours.tenant_id), "all that is due")


def test_a_payment_starts_as_pending() -> None:
    invoice = create_final_invoice()
    settled = {"due_at": None, "settled_at": NOW}
    assert_refused(invoice, payment_write(invoice, status=PaymentStatus.SUCCEEDED, **settled), "begins as pending")


@pytest.mark.parametrize("change", [{"minor": 1}, {"currency": "USD"}, {"gateway": "other"}, {"automatic": True}])
def test_amount_currency_gateway_and_origin_of_a_payment_cannot_change(change: dict[str, Any]) -> None:
    payment = request_payment(create_final_invoice())
    rows = Payment.objects.filter(pk=payment.pk)
    assert_refused(payment.invoice, lambda: rows.update(**change), "stays what it is")


@pytest.mark.parametrize("ills", [(), (GatewayFault.DECLINED,)])
def test_a_settled_payment_cannot_change(ills: tuple[GatewayFault, ...]) -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, *ills)
    payment = process_payment(request_payment(invoice))
    rows = Payment.objects.filter(pk=payment.pk)
    for change in (
        {"status": "pending", "settled_at": None, "due_at": NOW},
        {"reference": "x"},
        {"attempts": 9},
    ):
        assert_refused(invoice, lambda change=change: rows.update(**change), "stays what it is")  # type: ignore[misc]
    assert payments_of(invoice) == [payment]


def test_a_payment_cannot_be_deleted() -> None:
    invoice = create_final_invoice()
    request_payment(invoice)

    def say(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    assert_refused(invoice, lambda: say("DELETE FROM billing_payment"), "permission denied")
    assert_refused(invoice, lambda: say("TRUNCATE billing_payment"), "permission denied")


def test_an_invoice_cannot_be_paid_without_a_succeeded_payment() -> None:
    untried, waiting, declined, unfinished = (
        create_final_invoice(),
        create_final_invoice(),
        create_final_invoice(),
        create_draft_invoice(),
    )
    request_payment(waiting)
    fail_next_charges(declined, GatewayFault.DECLINED)
    process_payment(request_payment(declined))
    for invoice in (untried, waiting, declined, unfinished):
        rows = Invoice.objects.filter(pk=invoice.pk)
        assert_refused(invoice, lambda rows=rows: rows.update(status="paid", paid_at=NOW), "is paid by a payment")  # type: ignore[misc]


@pytest.mark.parametrize("change", [{"status": "finalized"}, {"status": "void"}, {"paid_at": NOW + timedelta(days=1)}])
def test_a_paid_invoice_stays_paid(change: dict[str, Any]) -> None:
    invoice = create_final_invoice()
    process_payment(request_payment(invoice))
    assert_refused(invoice, lambda: Invoice.objects.filter(pk=invoice.pk).update(**change), "once")
    assert reload_invoice(invoice).paid_at == NOW


def reject_payment(invoice: Invoice) -> Payment:
    fail_next_charges(invoice, GatewayFault.REJECTED)
    return process_payment(request_payment(invoice))


@pytest.mark.parametrize("otherwise", ["draft", "closing", "void", "uncollectible", "partially_paid"])
def test_an_invoice_stays_final_while_a_payment_is_pending_or_stuck(otherwise: str) -> None:
    waiting, stuck = create_final_invoice(), create_final_invoice()
    request_payment(waiting)
    reject_payment(stuck)
    for invoice in (waiting, stuck):
        rows = Invoice.objects.filter(pk=invoice.pk)
        assert_refused(
            invoice,
            lambda rows=rows: rows.update(status=otherwise),  # type: ignore[misc]
            f"does not become {otherwise} while its payment pay_",
        )
        assert reload_invoice(invoice).status == "finalized"


def test_an_invoice_without_payment_or_with_a_declined_one_can_be_voided() -> None:
    untried, declined = create_final_invoice(), create_final_invoice()
    fail_next_charges(declined, GatewayFault.DECLINED)
    process_payment(request_payment(declined))
    for invoice in (untried, declined):
        with tenant_scope(invoice.tenant_id):
            assert Invoice.objects.filter(pk=invoice.pk).update(status="void") == 1


def test_a_second_payment_beside_a_stuck_one_is_refused() -> None:
    invoice = create_final_invoice()
    reject_payment(invoice)
    assert_refused(invoice, payment_write(invoice), "one_payment_per_invoice")


@pytest.mark.parametrize(
    "change",
    [{"stuck_at": None}, {"due_at": NOW}, {"settled_at": NOW}, {"status": "pending"}, {"status": "declined"}],
)
def test_a_stuck_payment_has_only_the_time_it_became_stuck(change: dict[str, Any]) -> None:
    invoice = create_final_invoice()
    rows = Payment.objects.filter(pk=reject_payment(invoice).pk)
    assert_refused(invoice, lambda: rows.update(**change), "payment_stuck_since|payment_waits_or_is_settled")


def test_a_tenant_does_not_see_payments_of_another_tenant() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    request_payment(theirs)
    with tenant_scope(ours.tenant_id):
        assert Payment.objects.count() == 0
