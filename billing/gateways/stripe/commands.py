"""The outbox: a write at Stripe is in our books, with its key and its parameters as text, before it is sent.

Sent again under the same key it is the same write, for as long as Stripe remembers, which is a day. After that, and
where Stripe failed over it or turned it down (both are remembered too), we look first whether it was done, and take a
new key.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from stripe import CardError, InvalidRequestError, StripeClient, StripeError

from billing.gateways.stripe import pace
from billing.gateways.stripe.connecting import client
from billing.gateways.stripe.troubles import code_of, said, trouble, unclear
from billing.models import CommandState, StripeCommand
from tenants.services.walls import as_tenant

REMEMBERED = timedelta(hours=23)  # Stripe's day, less an hour for clocks that disagree
Answer = dict[str, Any]
Params = dict[str, Any]
Send = Callable[[StripeClient, Params, str], Any]  # with an idempotency key
Look = Callable[[StripeClient, datetime], Answer | None]  # what was done since then


@dataclass(frozen=True, slots=True)
class Write:
    """What is to be done once, for a subject of a tenant, and how to find out whether it was."""

    tenant_id: str
    subject: str
    step: str
    round: int
    params: Params
    send: Send
    look: Look
    keep: Callable[[Any], Answer]  # what of Stripe's answer stands in our books


def perform(write: Write, *, now: datetime) -> Answer:
    """Do it once, and return what Stripe said, the first time or long ago.

    A card's refusal is an answer: `{"declined": code, "reason": sentence}`. Raises what a gateway raises.
    """
    command = _frozen(write)
    if command.state == CommandState.DONE:
        return _read(command.answer)
    speaks = client()
    if command.state == CommandState.UNCLEAR or (command.sent_at and command.sent_at <= now - REMEMBERED):
        pace.take()
        try:
            found = write.look(speaks, command.sent_at or now)
        except StripeError as error:
            raise trouble(error) from None
        if found is not None:
            return _done(command, found)
        command = _anew(command)
    pace.take()
    _sending(command, now)
    try:
        said_ = write.send(speaks, _read(command.params), command.idem)
    except CardError as refusal:
        return _done(command, {"declined": code_of(refusal), "reason": said(refusal)})
    except StripeError as error:
        if unclear(error) or isinstance(
            error, InvalidRequestError
        ):  # either is repeated under its key for a day
            _update(command, state=CommandState.UNCLEAR)
        raise trouble(error) from None
    return _done(command, write.keep(said_))


def key(subject: str, step: str, round_: int, attempt: int, params: str) -> str:
    """Return the key of a write: whatever differs in it is another one."""
    return hashlib.sha256(f"{subject}|{step}|{round_}|{attempt}|{params}".encode()).hexdigest()


def as_text(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sent_since(tenant_id: str, subject: str, step: str, round_: int) -> datetime | None:
    """Return when a write was sent first, under the key that it has now; None where it never was."""
    which = {"tenant_id": tenant_id, "subject": subject, "step": step, "round": round_}
    with as_tenant(tenant_id):
        return StripeCommand.objects.filter(**which).values_list("sent_at", flat=True).first()


def _frozen(write: Write) -> StripeCommand:
    """Return its row, and make it first if there is none; what was frozen before counts."""
    text = as_text(write.params)
    which = {
        "tenant_id": write.tenant_id,
        "subject": write.subject,
        "step": write.step,
        "round": write.round,
    }
    idem = key(write.subject, write.step, write.round, 0, text)
    with as_tenant(write.tenant_id):
        made, _ = StripeCommand.objects.get_or_create(**which, defaults={"params": text, "idem": idem})
    return made


def _anew(command: StripeCommand) -> StripeCommand:
    """Give it another key: under the old one Stripe would repeat its failure, or knows it no more."""
    attempt = command.attempt + 1
    idem = key(command.subject, command.step, command.round, attempt, command.params)
    _update(command, attempt=attempt, idem=idem, state=CommandState.NEW, sent_at=None)
    command.attempt, command.idem, command.sent_at = attempt, idem, None
    return command


def _sending(command: StripeCommand, now: datetime) -> None:
    _update(command, sent=F("sent") + 1, sent_at=command.sent_at or now)


def _done(command: StripeCommand, answer: Answer) -> Answer:
    _update(command, state=CommandState.DONE, answer=as_text(answer))
    return answer


def _update(command: StripeCommand, **fields: Any) -> None:
    with as_tenant(command.tenant_id):
        StripeCommand.objects.filter(pk=command.pk).exclude(state=CommandState.DONE).update(**fields)


def _read(text: str) -> Answer:
    found: Answer = json.loads(text)
    return found
