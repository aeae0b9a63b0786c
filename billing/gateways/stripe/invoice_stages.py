"""Stages of a charge at Stripe, each done once: create, fill, finalize, pay or void."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import InvoiceAddLinesParams, InvoiceCreateParams, InvoiceListParams, InvoicePayParams

from billing.domain.stripe_amounts import lines_to_stripe
from billing.domain.stripe_states import StripeInvoiceState
from billing.gateways.stripe import commands, rate_limit
from billing.gateways.stripe.commands import Params, StripeFields, StripeWrite
from billing.gateways.stripe.connection import stripe_client
from billing.gateways.stripe.error_mapping import error_code, safe_message, to_gateway_error
from billing.models import StripeCharge
from ports.payments import ChargeLine, GatewayCharge, GatewayRejected

CLOCK_TOLERANCE = timedelta(minutes=10)  # tolerance between Stripe's clock and ours
EXPAND_PAYMENTS = "payments.data.payment.payment_intent"
MAX_LINE_LENGTH = 240


def create_invoice(record: StripeCharge, charge: GatewayCharge, *, now: datetime) -> StripeFields:
    """Create an empty draft with our number, which Stripe does not advance by itself."""
    params: Params = {
        "customer": record.customer_id,
        "currency": record.currency.lower(),
        "collection_method": "charge_automatically",
        "auto_advance": False,
        "automatic_tax": {"enabled": False},
        "pending_invoice_items_behavior": "exclude",
        "description": charge.text,
        "metadata": {"payment": record.pk, "tenant": record.tenant_id, "round": str(record.round)},
    }
    if charge.number:
        params["number"] = charge.number if not record.round else f"{charge.number}-r{record.round}"

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.invoices.create(cast(InvoiceCreateParams, stored), {"idempotency_key": key})

    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        return _find_created(client, record, since)

    return commands.perform_write(_step_write(record, "invoice", params, send, lookup), now=now)


def find_lost_invoice(record: StripeCharge, *, now: datetime) -> str:
    """Return the Stripe invoice of a charge whose creation was not answered, or ""."""
    since = commands.sent_since(record.tenant_id, record.pk, "invoice", record.round)
    if since is None:
        return ""
    rate_limit.reserve_call()
    try:
        made = _find_created(stripe_client(), record, since)
    except StripeError as error:
        raise to_gateway_error(error) from None
    return str(made["id"]) if made else ""


def _find_created(client: StripeClient, record: StripeCharge, since: datetime) -> StripeFields | None:
    """Find the Stripe invoice created for this round of a charge."""
    parameters: InvoiceListParams = {
        "customer": record.customer_id,
        "created": {"gte": int((since - CLOCK_TOLERANCE).timestamp())},
        "limit": 100,
    }
    for invoice in client.v1.invoices.list(parameters).auto_paging_iter():
        metadata = invoice.metadata.to_dict() if invoice.metadata else {}
        if (metadata.get("payment"), metadata.get("round")) == (record.pk, str(record.round)):
            return stored_invoice(invoice)
    return None


def add_lines(record: StripeCharge, charge: GatewayCharge, *, now: datetime) -> StripeFields:
    """Add the lines to the draft, in Stripe's integers, with our tax amounts."""
    parts = charge.parts or (ChargeLine(charge.text, charge.minor),)
    if sum(part.minor + part.tax for part in parts) != charge.minor:
        raise GatewayRejected("The sum of its lines differs from the amount to charge.", code="lines_differ")
    parts = tuple(each for part in parts for each in _without_unnamed_tax(part))
    amounts = lines_to_stripe([(part.minor, part.tax) for part in parts], record.currency)
    params: Params = {
        "lines": [
            {
                "amount": sent.minor,
                "description": part.text[:MAX_LINE_LENGTH],
                "discountable": False,
                "metadata": {"line": str(n)},
                **({"tax_amounts": [_tax_amounts(part, sent.minor, sent.tax)]} if part.taxed else {}),
            }
            for n, (part, sent) in enumerate(zip(parts, amounts, strict=True), start=1)
        ]
    }

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.invoices.add_lines(
            record.stripe_id, cast(InvoiceAddLinesParams, stored), {"idempotency_key": key}
        )

    return commands.perform_write(
        _step_write(record, "lines", params, send, _lookup_by(record, lambda invoice: invoice.lines.data)), now=now
    )


def _without_unnamed_tax(part: ChargeLine) -> tuple[ChargeLine, ...]:
    """Turn a tax without a rate into a line, since Stripe requires a rate."""
    if part.taxed or not part.tax:
        return (part,)
    return ChargeLine(part.text, part.minor), ChargeLine("Tax", part.tax)


def _tax_amounts(part: ChargeLine, taxable: int, tax: int) -> dict[str, Any]:
    return {
        "amount": tax,
        "taxable_amount": taxable,
        "tax_rate_data": {"display_name": part.tax_name, "percentage": part.tax_percent, "inclusive": False},
    }


def finalize_invoice(record: StripeCharge, *, now: datetime) -> StripeFields:
    """Finalize the draft so that it can be paid."""

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.invoices.finalize_invoice(
            record.stripe_id, {"auto_advance": stored["auto_advance"]}, {"idempotency_key": key}
        )

    done = _lookup_by(record, lambda invoice: invoice.status != "draft")
    return commands.perform_write(_step_write(record, "finalize", {"auto_advance": False}, send, done), now=now)


def pay_invoice(record: StripeCharge, *, now: datetime) -> StripeFields:
    """Pay it with the saved payment card, off-session; a decline is a result."""

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        try:
            return client.v1.invoices.pay(record.stripe_id, cast(InvoicePayParams, stored), {"idempotency_key": key})
        except InvalidRequestError as error:
            if error.param == "payment_method":  # the payment card was removed at Stripe meanwhile
                return {"declined": error_code(error), "reason": safe_message(error)}
            raise

    params = {"payment_method": record.card_id, "off_session": True}

    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        now_ = _fetch_invoice_state(client, record)
        in_progress = now_.intent in ("processing", "succeeded")
        return {"id": record.stripe_id, **_state_fields(now_)} if in_progress or now_.status != "open" else None

    return commands.perform_write(_step_write(record, "pay", params, send, lookup), now=now)


def void_invoice(record: StripeCharge, *, now: datetime) -> StripeFields:
    """Void the invoice so that it can never be paid."""

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        return client.v1.invoices.void_invoice(record.stripe_id, None, {"idempotency_key": key})

    done = _lookup_by(record, lambda invoice: invoice.status in ("void", "uncollectible"))
    return commands.perform_write(_step_write(record, "void", {}, send, done), now=now)


def delete_draft(record: StripeCharge, *, now: datetime) -> StripeFields:
    """Delete a draft; Stripe voids only finalized invoices."""

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        client.v1.invoices.delete(record.stripe_id, None, {"idempotency_key": key})
        return {"id": record.stripe_id, "status": "deleted"}

    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        try:
            client.v1.invoices.retrieve(record.stripe_id)
        except InvalidRequestError as gone:
            if gone.http_status == 404:
                return {"id": record.stripe_id, "status": "deleted"}
            raise
        return None

    return commands.perform_write(_step_write(record, "drop", {}, send, lookup), now=now)


def get_invoice_state(record: StripeCharge) -> StripeInvoiceState | None:
    """Return the invoice's current state and latest payment attempt, or None."""
    rate_limit.reserve_call()
    try:
        return _fetch_invoice_state(stripe_client(), record)
    except InvalidRequestError as error:
        if error.http_status == 404:
            return None
        raise to_gateway_error(error) from None
    except StripeError as error:
        raise to_gateway_error(error) from None


def _fetch_invoice_state(client: StripeClient, record: StripeCharge) -> StripeInvoiceState:
    invoice = client.v1.invoices.retrieve(record.stripe_id, {"expand": [EXPAND_PAYMENTS]}).to_dict()
    intents = [each["payment"].get("payment_intent") for each in invoice.get("payments", {}).get("data", [])]
    latest = next((each for each in intents if isinstance(each, dict)), {})
    error = latest.get("last_payment_error") or {}
    return StripeInvoiceState(
        status=invoice["status"],
        total=invoice["total"],
        amount_paid=invoice["amount_paid"],
        intent=latest.get("status", ""),
        code=error.get("decline_code") or error.get("code") or "",
        reason=error.get("message") or "",
    )


def state_in_fields(answer: StripeFields) -> StripeInvoiceState:
    """Read the invoice state from the fields that a stage returned."""
    return StripeInvoiceState(answer["status"], answer["total"], answer["amount_paid"])


def _state_fields(seen: StripeInvoiceState) -> StripeFields:
    return {"status": seen.status, "total": seen.total, "amount_paid": seen.amount_paid}


def stored_invoice(invoice: Any) -> StripeFields:
    """Return the fields of an invoice that we store."""
    if isinstance(invoice, dict):
        return invoice
    return {
        "id": invoice.id,
        "status": invoice.status,
        "total": invoice.total,
        "amount_due": invoice.amount_due,
        "amount_paid": invoice.amount_paid,
    }


def _lookup_by(record: StripeCharge, done: Callable[[Any], object]) -> commands.Lookup:
    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        invoice = client.v1.invoices.retrieve(record.stripe_id)
        return stored_invoice(invoice) if done(invoice) else None

    return lookup


def _step_write(
    record: StripeCharge, step: str, params: Params, send: commands.Send, lookup: commands.Lookup
) -> StripeWrite:
    return StripeWrite(record.tenant_id, record.pk, step, record.round, params, send, lookup, stored_invoice)
