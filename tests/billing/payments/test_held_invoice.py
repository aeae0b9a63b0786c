"""Changing an invoice and starting its payment exclude each other."""

from collections.abc import Callable
from threading import Event, Thread

import pytest
from django.db import DatabaseError, connection, transaction

from billing.models import Invoice, Payment
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, payments_of, reload_invoice
from tests.database import OwnDatabase


def begin(invoice: Invoice) -> None:
    """Write a payment as a careless service would, which does not lock the invoice first."""
    fields = {"tenant_id": invoice.tenant_id, "minor": invoice.total, "currency": invoice.currency}
    Payment.objects.create(invoice=invoice, gateway="simulated", opened_at=NOW, due_at=NOW, **fields)


def write_off(invoice: Invoice) -> None:
    Invoice.objects.filter(pk=invoice.pk).update(status="uncollectible")


@pytest.mark.parametrize(("first", "second"), [(begin, write_off), (write_off, begin)])
@pytest.mark.deep
def test_it_is_paid_or_written_off_and_never_both(
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
    held = first is begin
    assert ("may have taken the money" if held else "all that is due") in wrong[0]
    assert (reload_invoice(invoice).status, len(payments_of(invoice))) == (
        ("finalized", 1) if held else ("uncollectible", 0)
    )
