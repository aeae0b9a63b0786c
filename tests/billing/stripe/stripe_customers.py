"""Tenants with a card, faults of Stripe calls, and Stripe invoices."""

from collections.abc import Callable
from typing import Any

from billing.models import Invoice, StripeCharge, StripeCommand
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import create_final_invoice
from tests.fakestripe.server import Call, FakeStripe
from tests.fakestripe.tenants import create_card_holder

SECRETS = ("whsec_new", "whsec_old")


def create_invoice_with_card(fake: FakeStripe, *, how: str = "ok", **what: Any) -> Invoice:
    """Return a final invoice of a tenant with this kind of card."""
    invoice = create_final_invoice(**what)
    create_card_holder(fake, invoice.tenant_id, how=how)
    return invoice


def fail_calls(word: str, *ills: str) -> Callable[[Call], str]:
    """Let the calls of this kind fail with these faults, one each, in order."""
    left = list(ills)

    def ill(call: Call) -> str:
        return left.pop(0) if left and call.word == word else ""

    return ill


def stripe_invoices(fake: FakeStripe, *, status: str = "") -> list[dict[str, Any]]:
    """Return the invoices at Stripe, oldest first."""
    found = list(fake.things.all("invoice").values())
    return [each for each in found if not status or each["status"] == status]


def stripe_amounts_paid(fake: FakeStripe) -> list[int]:
    """Return the amount paid of each invoice at Stripe."""
    return [each["amount_paid"] for each in stripe_invoices(fake, status="paid")]


def stripe_charges_of(invoice: Invoice) -> StripeCharge:
    with tenant_scope(invoice.tenant_id):
        return StripeCharge.objects.latest("made_at", "pk")


def stripe_commands_of(invoice: Invoice) -> dict[str, StripeCommand]:
    with tenant_scope(invoice.tenant_id):
        return {each.step: each for each in StripeCommand.objects.all()}
