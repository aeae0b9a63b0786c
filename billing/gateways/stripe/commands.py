"""Write requests to Stripe, stored with key and parameters before they are sent.

Sent again with the same key, a request is the same write, as long as Stripe remembers it, which is a
day. After that, and if Stripe failed or rejected it (which it remembers too), we first look up whether
it was done, and then take a new key.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from stripe import CardError, InvalidRequestError, StripeClient, StripeError

from billing.gateways.stripe import rate_limit
from billing.gateways.stripe.connection import stripe_client
from billing.gateways.stripe.error_mapping import error_code, is_unclear, safe_message, to_gateway_error
from billing.models import StripeCommand, StripeCommandState
from tenants.services.rls import tenant_scope

KEY_LIFETIME = timedelta(hours=23)  # Stripe's day, less an hour for clock differences
StripeFields = dict[str, Any]
Params = dict[str, Any]
Send = Callable[[StripeClient, Params, str], Any]  # with an idempotency key
Lookup = Callable[[StripeClient, datetime], StripeFields | None]  # finds out whether it was done since then


@dataclass(frozen=True, slots=True)
class StripeWrite:
    """A write to do once for a tenant's subject, with how to check it."""

    tenant_id: str
    subject: str
    step: str
    round: int
    params: Params
    send: Send
    lookup: Lookup
    stored_fields: Callable[[Any], StripeFields]  # the part of Stripe's answer that we store


def perform_write(write: StripeWrite, *, now: datetime) -> StripeFields:
    """Perform a write once and return Stripe's answer, new or stored.

    A declined payment card is an answer: `{"declined": code, "reason": sentence}`. Raises what a gateway raises.
    """
    command = _stored_command(write)
    if command.state == StripeCommandState.DONE:
        return _read(command.answer)
    client = stripe_client()
    if command.state == StripeCommandState.UNKNOWN_OUTCOME or (
        command.sent_at and command.sent_at <= now - KEY_LIFETIME
    ):
        rate_limit.reserve_call()
        try:
            fields = write.lookup(client, command.sent_at or now)
        except StripeError as error:
            raise to_gateway_error(error) from None
        if fields is not None:
            return _done(command, fields)
        command = _with_new_key(command)
    rate_limit.reserve_call()
    _record_sending(command, now)
    try:
        response = write.send(client, _read(command.params), command.idem)
    except CardError as error:
        return _done(command, {"declined": error_code(error), "reason": safe_message(error)})
    except StripeError as error:
        if is_unclear(error) or isinstance(
            error, InvalidRequestError
        ):  # Stripe repeats both under the same key for a day
            _update(command, state=StripeCommandState.UNKNOWN_OUTCOME)
        raise to_gateway_error(error) from None
    return _done(command, write.stored_fields(response))


def idempotency_key(subject: str, step: str, round_: int, attempt: int, params: str) -> str:
    """Return the idempotency key of a write; any difference gives another key."""
    return hashlib.sha256(f"{subject}|{step}|{round_}|{attempt}|{params}".encode()).hexdigest()


def as_text(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sent_since(tenant_id: str, subject: str, step: str, round_: int) -> datetime | None:
    """Return when a write was first sent under its current key, or None."""
    identity = {"tenant_id": tenant_id, "subject": subject, "step": step, "round": round_}
    with tenant_scope(tenant_id):
        return StripeCommand.objects.filter(**identity).values_list("sent_at", flat=True).first()


def _stored_command(write: StripeWrite) -> StripeCommand:
    """Return the stored command of a write, creating it if needed.

    Parameters stored earlier win.
    """
    text = as_text(write.params)
    identity = {"tenant_id": write.tenant_id, "subject": write.subject, "step": write.step, "round": write.round}
    idem = idempotency_key(write.subject, write.step, write.round, 0, text)
    with tenant_scope(write.tenant_id):
        command, _ = StripeCommand.objects.get_or_create(**identity, defaults={"params": text, "idem": idem})
    return command


def _with_new_key(command: StripeCommand) -> StripeCommand:
    """Give a command a new key.

    Under the old one Stripe would repeat its failure or no longer knows it.
    """
    attempt = command.attempt + 1
    idem = idempotency_key(command.subject, command.step, command.round, attempt, command.params)
    _update(command, attempt=attempt, idem=idem, state=StripeCommandState.NEW, sent_at=None)
    command.attempt, command.idem, command.sent_at = attempt, idem, None
    return command


def _record_sending(command: StripeCommand, now: datetime) -> None:
    _update(command, sent=F("sent") + 1, sent_at=command.sent_at or now)


def _done(command: StripeCommand, answer: StripeFields) -> StripeFields:
    _update(command, state=StripeCommandState.DONE, answer=as_text(answer))
    return answer


def _update(command: StripeCommand, **fields: Any) -> None:
    with tenant_scope(command.tenant_id):
        StripeCommand.objects.filter(pk=command.pk).exclude(state=StripeCommandState.DONE).update(**fields)


def _read(text: str) -> StripeFields:
    fields: StripeFields = json.loads(text)
    return fields
