"""Looking at what Stripe holds now: an event only says where to look, and what is there counts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import EventListParams, InvoiceListParams

from billing.domain.stripe_events import Told, read
from billing.gateways.stripe import pace
from billing.gateways.stripe.connecting import client
from billing.gateways.stripe.troubles import trouble

PAGE = 100
# Payments need none of their events: their invoices are compared one by one.
TOLD_ONLY = (
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
class InvoiceThere:
    """An invoice at Stripe: whose payment it says it is, and how it stands; amounts are Stripe's integers."""

    id: str
    payment: str
    tenant: str
    status: str
    currency: str
    total: int
    amount_paid: int
    created: datetime


@dataclass(frozen=True, slots=True)
class MarkThere:
    """A dispute or a refund: of which invoice there, and how it stands."""

    id: str
    invoice: str
    status: str
    amount: int
    currency: str
    reason: str
    created: datetime


@dataclass(frozen=True, slots=True)
class CardThere:
    id: str
    brand: str
    last4: str
    ends: str  # 2029-07


def invoice(stripe_id: str) -> InvoiceThere | None:
    """Return an invoice as it is there now; None where there is none."""
    return _asked(lambda speaks: _invoice(speaks.v1.invoices.retrieve(stripe_id).to_dict()))


def dispute(stripe_id: str) -> MarkThere | None:
    """Return a dispute as it is there now, with the invoice that it is about."""
    return _asked(lambda speaks: _mark(speaks, speaks.v1.disputes.retrieve(stripe_id).to_dict()))


def refund(stripe_id: str) -> MarkThere | None:
    """Return a refund as it is there now, with the invoice that it is about."""
    return _asked(lambda speaks: _mark(speaks, speaks.v1.refunds.retrieve(stripe_id).to_dict()))


def saved_card(session_id: str) -> tuple[str, CardThere | None]:
    """Return the state of a form for a card, and the card once one is saved in it."""

    def look(speaks: StripeClient) -> tuple[str, CardThere | None]:
        form = speaks.v1.checkout.sessions.retrieve(session_id, {"expand": ["setup_intent"]}).to_dict()
        intent = form.get("setup_intent") or {}
        if form["status"] != "complete" or intent.get("status") != "succeeded":
            return str(form["status"]), None
        pace.take()
        method = speaks.v1.payment_methods.retrieve(intent["payment_method"]).to_dict()
        card = method.get("card") or {}
        ends = f"{card['exp_year']}-{card['exp_month']:02d}" if card else ""
        return "complete", CardThere(
            method["id"], card.get("brand", method["type"]), card.get("last4", ""), ends
        )

    return _asked(look) or ("missing", None)


def invoices(since: datetime, until: datetime, *, after: str = "") -> tuple[list[InvoiceThere], str]:
    """Return a page of the invoices that were made there within a while, and after which the next one begins.

    Nothing where it is the last one.
    """
    asked: InvoiceListParams = {"created": _window(since, until), "limit": PAGE}

    def page(speaks: StripeClient, after: str) -> Any:
        return speaks.v1.invoices.list({**asked, "starting_after": after} if after else asked)

    told, after = _page(page, after)
    return [_invoice(each) for each in told], after


def events(since: datetime, until: datetime, *, after: str = "") -> tuple[list[Told], str]:
    """Return a page of what happened there within a while that only events tell of: disputes, refunds, cards."""
    asked: EventListParams = {"created": _window(since, until), "types": list(TOLD_ONLY), "limit": PAGE}

    def page(speaks: StripeClient, after: str) -> Any:
        return speaks.v1.events.list({**asked, "starting_after": after} if after else asked)

    told, after = _page(page, after)
    return [read(each) for each in told], after


def _window(since: datetime, until: datetime) -> Any:
    return {"gte": int(since.timestamp()), "lt": int(until.timestamp())}


def _page(ask: Callable[[StripeClient, str], Any], after: str) -> tuple[list[dict[str, Any]], str]:
    speaks = client()
    pace.take()
    try:
        page = ask(speaks, after).to_dict()
    except StripeError as error:
        raise trouble(error) from None
    return page["data"], page["data"][-1]["id"] if page["has_more"] else ""


def _asked(ask: Callable[[StripeClient], T]) -> T | None:
    """Ask one thing; None where there is no such thing there. Raises what a gateway raises."""
    speaks = client()
    pace.take()
    try:
        return ask(speaks)
    except InvalidRequestError as error:
        if error.http_status == 404:
            return None
        raise trouble(error) from None
    except StripeError as error:
        raise trouble(error) from None


def _invoice(told: dict[str, Any]) -> InvoiceThere:
    meant = told.get("metadata") or {}
    return InvoiceThere(
        id=told["id"],
        payment=meant.get("payment", ""),
        tenant=meant.get("tenant", ""),
        status=str(told["status"]),
        currency=told["currency"].upper(),
        total=told["total"],
        amount_paid=told["amount_paid"],
        created=datetime.fromtimestamp(told["created"], UTC),
    )


def _mark(speaks: StripeClient, told: dict[str, Any]) -> MarkThere:
    pace.take()
    paid = speaks.v1.invoice_payments.list(
        {"payment": {"type": "payment_intent", "payment_intent": told["payment_intent"]}}
    ).to_dict()
    return MarkThere(
        id=told["id"],
        invoice=next((each["invoice"] for each in paid["data"]), ""),
        status=str(told["status"]),
        amount=told["amount"],
        currency=told["currency"].upper(),
        reason=told.get("reason") or "",
        created=datetime.fromtimestamp(told["created"], UTC),
    )
