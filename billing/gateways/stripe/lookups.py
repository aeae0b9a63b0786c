"""Lookups of the current state at Stripe; events only say where to look."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import EventListParams, InvoiceListParams

from billing.domain.stripe_events import WebhookEvent, parse_event
from billing.gateways.stripe import rate_limit
from billing.gateways.stripe.connection import stripe_client
from billing.gateways.stripe.error_mapping import to_gateway_error

PAGE = 100
# Payments do not need their events: their invoices are compared one by one.
POLLED_EVENT_TYPES = (
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.closed",
    "refund.created",
    "refund.updated",
    "refund.failed",
    "checkout.session.completed",
    "checkout.session.expired",
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StripeInvoice:
    """An invoice at Stripe with the payment it is for; amounts are Stripe's integers."""

    id: str
    payment: str
    tenant: str
    status: str
    currency: str
    total: int
    amount_paid: int
    created: datetime


@dataclass(frozen=True, slots=True)
class StripeDisputeOrRefund:
    """A dispute or refund at Stripe with its invoice and status."""

    id: str
    invoice: str
    status: str
    amount: int
    currency: str
    reason: str
    created: datetime


@dataclass(frozen=True, slots=True)
class StripeCard:
    id: str
    brand: str
    last4: str
    ends: str  # 2029-07


def get_invoice(stripe_id: str) -> StripeInvoice | None:
    """Return the current state of an invoice, or None."""
    return _get_or_none(lambda client: _parse_invoice(client.v1.invoices.retrieve(stripe_id).to_dict()))


def get_dispute(stripe_id: str) -> StripeDisputeOrRefund | None:
    """Return the current state of a dispute with its invoice, or None."""
    return _get_or_none(
        lambda client: _parse_dispute_or_refund(client, client.v1.disputes.retrieve(stripe_id).to_dict())
    )


def get_refund(stripe_id: str) -> StripeDisputeOrRefund | None:
    """Return the current state of a refund with its invoice, or None."""
    return _get_or_none(
        lambda client: _parse_dispute_or_refund(client, client.v1.refunds.retrieve(stripe_id).to_dict())
    )


def get_saved_card(session_id: str) -> tuple[str, StripeCard | None]:
    """Return the state of a card form, and the card once one is saved."""

    def lookup(client: StripeClient) -> tuple[str, StripeCard | None]:
        form = client.v1.checkout.sessions.retrieve(session_id, {"expand": ["setup_intent"]}).to_dict()
        intent = form.get("setup_intent") or {}
        if form["status"] != "complete" or intent.get("status") != "succeeded":
            return str(form["status"]), None
        rate_limit.reserve_call()
        method = client.v1.payment_methods.retrieve(intent["payment_method"]).to_dict()
        card = method.get("card") or {}
        ends = f"{card['exp_year']}-{card['exp_month']:02d}" if card else ""
        return "complete", StripeCard(method["id"], card.get("brand", method["type"]), card.get("last4", ""), ends)

    return _get_or_none(lookup) or ("missing", None)


def list_invoices(since: datetime, until: datetime, *, after: str = "") -> tuple[list[StripeInvoice], str]:
    """Return a page of the invoices created in a period, and the next cursor.

    The cursor is empty on the last page.
    """
    parameters: InvoiceListParams = {"created": _window(since, until), "limit": PAGE}

    def page(client: StripeClient, after: str) -> Any:
        return client.v1.invoices.list({**parameters, "starting_after": after} if after else parameters)

    invoices, after = _page(page, after)
    return [_parse_invoice(each) for each in invoices], after


def list_events(since: datetime, until: datetime, *, after: str = "") -> tuple[list[WebhookEvent], str]:
    """Return a page of a period's dispute, refund and card events, and the next cursor."""
    parameters: EventListParams = {"created": _window(since, until), "types": list(POLLED_EVENT_TYPES), "limit": PAGE}

    def page(client: StripeClient, after: str) -> Any:
        return client.v1.events.list({**parameters, "starting_after": after} if after else parameters)

    events, after = _page(page, after)
    return [parse_event(each) for each in events], after


def _window(since: datetime, until: datetime) -> Any:
    return {"gte": int(since.timestamp()), "lt": int(until.timestamp())}


def _page(fetch: Callable[[StripeClient, str], Any], after: str) -> tuple[list[dict[str, Any]], str]:
    client = stripe_client()
    rate_limit.reserve_call()
    try:
        page = fetch(client, after).to_dict()
    except StripeError as error:
        raise to_gateway_error(error) from None
    return page["data"], page["data"][-1]["id"] if page["has_more"] else ""


def _get_or_none(fetch: Callable[[StripeClient], T]) -> T | None:
    """Return the result of one call, or None for not found.

    Raises what a gateway raises.
    """
    client = stripe_client()
    rate_limit.reserve_call()
    try:
        return fetch(client)
    except InvalidRequestError as error:
        if error.http_status == 404:
            return None
        raise to_gateway_error(error) from None
    except StripeError as error:
        raise to_gateway_error(error) from None


def _parse_invoice(invoice: dict[str, Any]) -> StripeInvoice:
    meant = invoice.get("metadata") or {}
    return StripeInvoice(
        id=invoice["id"],
        payment=meant.get("payment", ""),
        tenant=meant.get("tenant", ""),
        status=str(invoice["status"]),
        currency=invoice["currency"].upper(),
        total=invoice["total"],
        amount_paid=invoice["amount_paid"],
        created=datetime.fromtimestamp(invoice["created"], UTC),
    )


def _parse_dispute_or_refund(client: StripeClient, found: dict[str, Any]) -> StripeDisputeOrRefund:
    rate_limit.reserve_call()
    paid = client.v1.invoice_payments.list(
        {"payment": {"type": "payment_intent", "payment_intent": found["payment_intent"]}}
    ).to_dict()
    return StripeDisputeOrRefund(
        id=found["id"],
        invoice=next((each["invoice"] for each in paid["data"]), ""),
        status=str(found["status"]),
        amount=found["amount"],
        currency=found["currency"].upper(),
        reason=found.get("reason") or "",
        created=datetime.fromtimestamp(found["created"], UTC),
    )
