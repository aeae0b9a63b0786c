"""Mutual exclusion of payment and write-off of an invoice."""

from collections.abc import Callable
from threading import Event, Thread

import pytest
from django.db import DatabaseError, connection, transaction

from billing.models import Invoice, Payment, WriteOff
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, payments_of, reload_invoice
from tests.database import OwnDatabase


def create_payment(invoice: Invoice) -> None:
    """Create a payment without locking the invoice first."""
    fields = {"tenant_id": invoice.tenant_id, "minor": invoice.total, "currency": invoice.currency}
    Payment.objects.create(invoice=invoice, gateway="simulated", opened_at=NOW, due_at=NOW, **fields)


def write_off(invoice: Invoice) -> None:
    fields = {"tenant_id": invoice.tenant_id, "minor": invoice.total, "currency": invoice.currency}
    WriteOff.objects.create(invoice=invoice, reason="insolvent", at=NOW, by="x", **fields)
    Invoice.objects.filter(pk=invoice.pk).update(status="uncollectible")


@pytest.mark.parametrize(("first", "second"), [(create_payment, write_off), (write_off, create_payment)])
@pytest.mark.deep
def test_an_invoice_is_either_paid_or_written_off(
    own_database: OwnDatabase, first: Callable[[Invoice], None], second: Callable[[Invoice], None]
) -> None:
    invoice = create_final_invoice()
    written, go, wrong = Event(), Event(), []

    def one() -> None:
        try:
            with tenant_scope(invoice.tenant_id):
                first(invoice)
                written.set()
                go.wait(20)
        finally:
            connection.close()

    def other() -> None:
        try:
            with tenant_scope(invoice.tenant_id), transaction.atomic():
                second(invoice)
        except DatabaseError as error:
            wrong.append(str(error))
        finally:
            connection.close()

    early, late = Thread(target=one), Thread(target=other)
    early.start()
    assert written.wait(20)
    late.start()
    late.join(0.5)
    assert late.is_alive(), "it did not wait"
    go.set()
    for thread in (early, late):
        thread.join(20)
    assert len(wrong) == 1
    held = first is create_payment
    assert ("may have taken the money" if held else "all that is due") in wrong[0]
    assert (reload_invoice(invoice).status, len(payments_of(invoice))) == (
        ("finalized", 1) if held else ("uncollectible", 0)
    )
