"""Final invoices to be paid, and a gateway whose worst days can be ordered."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from billing.gateways.simulated import Ill, suffer
from billing.models import Invoice, Payment, SimulatedCharge
from billing.services import closing, drafts, rating
from billing.services.payments import collecting, opening
from ports import doorbell
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, at, customer, ran, sold

NOW = at("2026-11-01 00:05:00")
Rung = list[tuple[str, str, str, datetime]]  # task, subject, tenant, when
MIRA = Actor("user", "usr_mira", "mira@kestrel.example")


def bill(nano_per_hour: int = 2 * EURO, *, currency: str = "EUR") -> Invoice:
    """Return the final invoice of a tenant's October: an hour at this price."""
    tenant, project = customer(currency=currency)
    ran(project, sold(nano_per_hour, currency=currency), at("2026-10-05 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    found = closing.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def draft() -> Invoice:
    tenant, project = customer()
    ran(project, sold(), at("2026-11-01 00:00:00"), 60)
    rating.rate_tenant(tenant, now=NOW)
    drafts.refresh(tenant, now=NOW)
    with as_tenant(tenant.pk):
        return Invoice.objects.get()


def fresh(invoice: Invoice) -> Invoice:
    with as_tenant(invoice.tenant_id):
        return Invoice.objects.select_related("period").get(pk=invoice.pk)


def tried(invoice: Invoice) -> list[Payment]:
    """Return its payments, first to last."""
    with as_tenant(invoice.tenant_id):
        return list(Payment.objects.filter(invoice=invoice).order_by("opened_at", "pk"))


def pay(invoice: Invoice, *, now: datetime = NOW) -> Payment:
    """Ask for the money, as somebody who presses the button does."""
    with as_tenant(invoice.tenant_id):
        return opening.pay(invoice, actor=MIRA, now=now)


def collect(payment: Payment, *, now: datetime = NOW) -> Payment:
    """Let a worker look at a payment, and return it as it is then."""
    collecting.collect(payment.pk, payment.tenant_id, now=now)
    with as_tenant(payment.tenant_id):
        return Payment.objects.get(pk=payment.pk)


def ill(invoice: Invoice, *ills: Ill) -> None:
    suffer(invoice.tenant_id, *ills)


def taken(invoice: Invoice) -> list[int]:
    """Return what the gateway has taken from the invoice's tenant."""
    charges = SimulatedCharge.objects.filter(payer=invoice.tenant_id, declined=False)
    return list(charges.values_list("minor", flat=True))


def sweep(now: datetime) -> None:
    """Do what the beat does every half minute, with workers that lose no hint."""
    opening.open_due(now=now)
    for _, payment_id, tenant_id in collecting.due(now=now):
        collecting.collect(payment_id, tenant_id, now=now)


@contextmanager
def heard() -> Iterator[Rung]:
    """Keep hints instead of sending them."""
    rung: Rung = []
    with doorbell.heard_by(lambda *hint: rung.append(hint)):
        yield rung
