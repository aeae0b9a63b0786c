"""The steps of one charge at Stripe, each done once: make the invoice, fill it, finalize it, pay it, or void it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import InvoiceAddLinesParams, InvoiceCreateParams, InvoiceListParams, InvoicePayParams

from billing.domain.stripe_amounts import of_parts
from billing.domain.stripe_states import Seen
from billing.gateways.stripe import commands, pace
from billing.gateways.stripe.commands import Answer, Params, Write
from billing.gateways.stripe.connecting import client
from billing.gateways.stripe.troubles import code_of, said, trouble
from billing.models import StripeCharge
from ports.payments import Charge, ChargePart, Rejected

EARLIER = timedelta(minutes=10)  # Stripe's clock and ours
PAYMENTS = "payments.data.payment.payment_intent"
LONGEST_LINE = 240


def create(book: StripeCharge, charge: Charge, *, now: datetime) -> Answer:
    """Make an empty draft of our number, which Stripe does nothing with by itself."""
    params: Params = {
        "customer": book.customer_id,
        "currency": book.currency.lower(),
        "collection_method": "charge_automatically",
        "auto_advance": False,
        "automatic_tax": {"enabled": False},
        "pending_invoice_items_behavior": "exclude",
        "description": charge.text,
        "metadata": {"payment": book.pk, "tenant": book.tenant_id, "round": str(book.round)},
    }
    if charge.number:
        params["number"] = charge.number if not book.round else f"{charge.number}-r{book.round}"

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        return speaks.v1.invoices.create(cast(InvoiceCreateParams, frozen), {"idempotency_key": idem})

    def look(speaks: StripeClient, since: datetime) -> Answer | None:
        return _made(speaks, book, since)

    return commands.perform(_write(book, "invoice", params, send, look), now=now)


def sought(book: StripeCharge, *, now: datetime) -> str:
    """Return which invoice at Stripe stands for a charge, where one may have been made and its answer was lost."""
    since = commands.sent_since(book.tenant_id, book.pk, "invoice", book.round)
    if since is None:
        return ""
    pace.take()
    try:
        made = _made(client(), book, since)
    except StripeError as error:
        raise trouble(error) from None
    return str(made["id"]) if made else ""


def _made(speaks: StripeClient, book: StripeCharge, since: datetime) -> Answer | None:
    """Find the invoice that was made there for this round of a charge."""
    asked: InvoiceListParams = {
        "customer": book.customer_id,
        "created": {"gte": int((since - EARLIER).timestamp())},
        "limit": 100,
    }
    for invoice in speaks.v1.invoices.list(asked).auto_paging_iter():
        meant = invoice.metadata.to_dict() if invoice.metadata else {}
        if (meant.get("payment"), meant.get("round")) == (book.pk, str(book.round)):
            return kept(invoice)
    return None


def fill(book: StripeCharge, charge: Charge, *, now: datetime) -> Answer:
    """Give the draft its lines, in Stripe's integers, with the tax that we worked out."""
    parts = charge.parts or (ChargePart(charge.text, charge.minor),)
    if sum(part.minor + part.tax for part in parts) != charge.minor:
        raise Rejected("Its lines do not add up to what is to be charged.", code="lines_differ")
    parts = tuple(each for part in parts for each in _plain(part))
    amounts = of_parts([(part.minor, part.tax) for part in parts], book.currency)
    params: Params = {
        "lines": [
            {
                "amount": sent.minor,
                "description": part.text[:LONGEST_LINE],
                "discountable": False,
                "metadata": {"line": str(n)},
                **({"tax_amounts": [_taxed(part, sent.minor, sent.tax)]} if part.taxed else {}),
            }
            for n, (part, sent) in enumerate(zip(parts, amounts, strict=True), start=1)
        ]
    }

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        return speaks.v1.invoices.add_lines(
            book.stripe_id, cast(InvoiceAddLinesParams, frozen), {"idempotency_key": idem}
        )

    return commands.perform(
        _write(book, "lines", params, send, _looked(book, lambda invoice: invoice.lines.data)), now=now
    )


def _plain(part: ChargePart) -> tuple[ChargePart, ...]:
    """Make a line of a tax that has no name: Stripe takes a tax only with its rate."""
    if part.taxed or not part.tax:
        return (part,)
    return ChargePart(part.text, part.minor), ChargePart("Tax", part.tax)


def _taxed(part: ChargePart, taxable: int, tax: int) -> dict[str, Any]:
    return {
        "amount": tax,
        "taxable_amount": taxable,
        "tax_rate_data": {"display_name": part.tax_name, "percentage": part.tax_percent, "inclusive": False},
    }


def finalize(book: StripeCharge, *, now: datetime) -> Answer:
    """Let it be an invoice that can be paid."""

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        return speaks.v1.invoices.finalize_invoice(
            book.stripe_id, {"auto_advance": frozen["auto_advance"]}, {"idempotency_key": idem}
        )

    done = _looked(book, lambda invoice: invoice.status != "draft")
    return commands.perform(_write(book, "finalize", {"auto_advance": False}, send, done), now=now)


def pay(book: StripeCharge, *, now: datetime) -> Answer:
    """Have it paid with the saved card, with nobody there; a refusal is an answer."""

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        try:
            return speaks.v1.invoices.pay(
                book.stripe_id, cast(InvoicePayParams, frozen), {"idempotency_key": idem}
            )
        except InvalidRequestError as refusal:
            if refusal.param == "payment_method":  # the card was taken off at Stripe meanwhile
                return {"declined": code_of(refusal), "reason": said(refusal)}
            raise

    params = {"payment_method": book.card_id, "off_session": True}

    def look(speaks: StripeClient, since: datetime) -> Answer | None:
        now_ = _seen(speaks, book)
        asked = now_.intent in ("processing", "succeeded")
        return {"id": book.stripe_id, **_told(now_)} if asked or now_.status != "open" else None

    return commands.perform(_write(book, "pay", params, send, look), now=now)


def void(book: StripeCharge, *, now: datetime) -> Answer:
    """See that nothing is ever taken for it."""

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        return speaks.v1.invoices.void_invoice(book.stripe_id, None, {"idempotency_key": idem})

    done = _looked(book, lambda invoice: invoice.status in ("void", "uncollectible"))
    return commands.perform(_write(book, "void", {}, send, done), now=now)


def drop(book: StripeCharge, *, now: datetime) -> Answer:
    """Delete a draft: Stripe voids only what is finalized."""

    def send(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        speaks.v1.invoices.delete(book.stripe_id, None, {"idempotency_key": idem})
        return {"id": book.stripe_id, "status": "deleted"}

    def look(speaks: StripeClient, since: datetime) -> Answer | None:
        try:
            speaks.v1.invoices.retrieve(book.stripe_id)
        except InvalidRequestError as gone:
            if gone.http_status == 404:
                return {"id": book.stripe_id, "status": "deleted"}
            raise
        return None

    return commands.perform(_write(book, "drop", {}, send, look), now=now)


def seen(book: StripeCharge) -> Seen | None:
    """Look at the invoice and at its latest attempt to be paid, as they are now; None where it is not there."""
    pace.take()
    try:
        return _seen(client(), book)
    except InvalidRequestError as error:
        if error.http_status == 404:
            return None
        raise trouble(error) from None
    except StripeError as error:
        raise trouble(error) from None


def _seen(speaks: StripeClient, book: StripeCharge) -> Seen:
    told = speaks.v1.invoices.retrieve(book.stripe_id, {"expand": [PAYMENTS]}).to_dict()
    intents = [each["payment"].get("payment_intent") for each in told.get("payments", {}).get("data", [])]
    latest = next((each for each in intents if isinstance(each, dict)), {})
    error = latest.get("last_payment_error") or {}
    return Seen(
        status=told["status"],
        total=told["total"],
        amount_paid=told["amount_paid"],
        intent=latest.get("status", ""),
        code=error.get("decline_code") or error.get("code") or "",
        reason=error.get("message") or "",
    )


def seen_in(answer: Answer) -> Seen:
    """Read what a step was answered."""
    return Seen(answer["status"], answer["total"], answer["amount_paid"])


def _told(seen: Seen) -> Answer:
    return {"status": seen.status, "total": seen.total, "amount_paid": seen.amount_paid}


def kept(invoice: Any) -> Answer:
    """Return what of an invoice stands in our books."""
    if isinstance(invoice, dict):
        return invoice
    return {
        "id": invoice.id,
        "status": invoice.status,
        "total": invoice.total,
        "amount_due": invoice.amount_due,
        "amount_paid": invoice.amount_paid,
    }


def _looked(book: StripeCharge, done: Callable[[Any], object]) -> commands.Look:
    def look(speaks: StripeClient, since: datetime) -> Answer | None:
        invoice = speaks.v1.invoices.retrieve(book.stripe_id)
        return kept(invoice) if done(invoice) else None

    return look


def _write(book: StripeCharge, step: str, params: Params, send: commands.Send, look: commands.Look) -> Write:
    return Write(book.tenant_id, book.pk, step, book.round, params, send, look, kept)
