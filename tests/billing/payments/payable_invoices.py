"""Payable invoices, and a gateway with injected faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from billing.gateways.simulated import GatewayFault
from billing.models import Invoice, Payment, SimulatedCharge
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection, payment_creation
from billing.services.rating import lease_rating
from ports import outbox
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.gateways.faults import inject_faults
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc

NOW = utc("2026-11-01 00:05:00")
CapturedMessages = list[tuple[str, str, str, datetime]]  # task, subject, tenant, when
MIRA = Actor("user", "usr_mira", "mira@kestrel.example")


def create_final_invoice(nano_per_hour: int = 2 * EURO, *, currency: str = "EUR") -> Invoice:
    """Return the final invoice of a tenant's October: an hour at this price."""
    tenant, project = create_customer(currency=currency)
    add_ended_lease(project, create_priced_offering(nano_per_hour, currency=currency), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def create_draft_invoice() -> Invoice:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-11-01 00:00:00"), 60)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        return Invoice.objects.get()


def reload_invoice(invoice: Invoice) -> Invoice:
    with tenant_scope(invoice.tenant_id):
        return Invoice.objects.select_related("period").get(pk=invoice.pk)


def payments_of(invoice: Invoice) -> list[Payment]:
    """Return the payments of an invoice, oldest first."""
    with tenant_scope(invoice.tenant_id):
        return list(Payment.objects.filter(invoice=invoice).order_by("opened_at", "pk"))


def request_payment(invoice: Invoice, *, now: datetime = NOW) -> Payment:
    """Request a payment like the pay button does."""
    with tenant_scope(invoice.tenant_id):
        return payment_creation.open_payment(invoice, actor=MIRA, now=now)


def process_payment(payment: Payment, *, now: datetime = NOW) -> Payment:
    """Let a worker process a payment, and return its new state."""
    payment_collection.PAYMENTS.collect(payment.pk, payment.tenant_id, now=now)
    with tenant_scope(payment.tenant_id):
        return Payment.objects.get(pk=payment.pk)


def fail_next_charges(invoice: Invoice, *ills: GatewayFault) -> None:
    inject_faults(invoice.tenant_id, *ills)


def charged_amounts(invoice: Invoice) -> list[int]:
    """Return what the gateway has charged the invoice's tenant."""
    charges = SimulatedCharge.objects.filter(payer=invoice.tenant_id, declined=False)
    return list(charges.values_list("minor", flat=True))


def sweep_payments(now: datetime) -> None:
    """Run the half-minute payment task with workers that lose no message."""
    payment_creation.open_due_payments(now=now)
    for _, payment_id, tenant_id in payment_collection.PAYMENTS.due(now=now):
        payment_collection.PAYMENTS.collect(payment_id, tenant_id, now=now)


@contextmanager
def captured_messages() -> Iterator[CapturedMessages]:
    """Keep messages instead of sending them."""
    enqueued: CapturedMessages = []
    with outbox.captured(lambda *hint: enqueued.append(hint)):
        yield enqueued
