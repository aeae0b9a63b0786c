"""Tenants with a card, what befalls their calls, and what Stripe has taken of them."""

from collections.abc import Callable
from typing import Any

from billing.models import Invoice, StripeCharge, StripeCommand
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import bill
from tests.fakestripe.server import Call, FakeStripe
from tests.fakestripe.tenants import holder

SECRETS = ("whsec_new", "whsec_old")


def billed(fake: FakeStripe, *, how: str = "ok", **what: Any) -> Invoice:
    """Return the final invoice of a tenant with a card that does this when it is charged."""
    invoice = bill(**what)
    holder(fake, invoice.tenant_id, how=how)
    return invoice


def at(word: str, *ills: str) -> Callable[[Call], str]:
    """Let the calls of this kind suffer these, one each, in order."""
    left = list(ills)

    def ill(call: Call) -> str:
        return left.pop(0) if left and call.word == word else ""

    return ill


def there(fake: FakeStripe, *, status: str = "") -> list[dict[str, Any]]:
    """Return the invoices at Stripe, first to last."""
    found = list(fake.things.all("invoice").values())
    return [each for each in found if not status or each["status"] == status]


def taken(fake: FakeStripe) -> list[int]:
    """Return what Stripe took, of each invoice."""
    return [each["amount_paid"] for each in there(fake, status="paid")]


def book(invoice: Invoice) -> StripeCharge:
    with as_tenant(invoice.tenant_id):
        return StripeCharge.objects.latest("made_at", "pk")


def commands(invoice: Invoice) -> dict[str, StripeCommand]:
    with as_tenant(invoice.tenant_id):
        return {each.step: each for each in StripeCommand.objects.all()}
