"""Stripe customers, and Checkout sessions in which a payment card is saved.

Card numbers are entered at Stripe and never reach us.
"""

from datetime import datetime
from typing import Any, cast

from stripe import StripeClient
from stripe.params import CustomerCreateParams
from stripe.params.checkout import SessionCreateParams

from billing.gateways.stripe import commands
from billing.gateways.stripe.commands import Params, StripeFields, StripeWrite


def ensure_customer(tenant_id: str, name: str, *, now: datetime) -> str:
    """Return a tenant's customer id at Stripe, creating the customer if needed."""

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.customers.create(cast(CustomerCreateParams, stored), {"idempotency_key": key})

    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        found = client.v1.customers.search({"query": f"metadata['tenant']:'{tenant_id}'"}).data
        return {"id": found[0].id} if found else None

    params: Params = {"name": name, "metadata": {"tenant": tenant_id}}
    write = StripeWrite(tenant_id, tenant_id, "customer", 0, params, send, lookup, _id)
    return str(commands.perform_write(write, now=now)["id"])


def open_card_session(
    tenant_id: str, form_id: str, customer_id: str, currency: str, back: str, *, now: datetime
) -> StripeFields:
    """Open a card form and return its `id` and `url`.

    `back` is where people return to from there.
    """

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.checkout.sessions.create(cast(SessionCreateParams, stored), {"idempotency_key": key})

    params: Params = {
        "mode": "setup",
        "customer": customer_id,
        "currency": currency.lower(),
        "success_url": f"{back}?form={form_id}",
        "cancel_url": back,
        "metadata": {"tenant": tenant_id, "form": form_id},
    }
    # An unused form costs nothing, so a lost one is not looked up.
    write = StripeWrite(
        tenant_id,
        form_id,
        "session",
        0,
        params,
        send,
        lambda client, since: None,
        lambda made: {"id": made.id, "url": made.url},
    )
    return commands.perform_write(write, now=now)


def _id(made: Any) -> StripeFields:
    return {"id": made.id}
