"""An operator answers a dispute: gives back all of it or a part, by a credit note, or says why not."""

from datetime import datetime

from django.db import transaction

from billing.domain.crediting import Left
from billing.domain.money import Money
from billing.models import CreditNote, CreditNoteLine, Dispute, DisputeStatus
from billing.services import crediting
from billing.services.disputes.asking import claim, ended, said
from broker.services.leases import evicting
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant


@transaction.atomic
def accept(found: Dispute, *, minor: int | None, answer: str, actor: Actor, now: datetime) -> Dispute:
    """Give back so many minor units of what is in question, with the tax on them; None: all that is left of it.

    Where all of the line was given back meanwhile, the credit note that did is named and nothing more is booked.

    Raises Invalid for more than is in question or left of the line, NotCreditable while a payment is under way, and
    DisputeOver for a dispute that has ended.
    """
    with as_tenant(found.tenant_id):
        held = claim(found)
        words = said(answer, field="answer") if answer.strip() else ""
        lines = crediting.left(held.invoice)
        wanted = _wanted(held, next(line for line in lines if line.n == held.line.n), minor)
        words = words or _usual(held, wanted)
        if wanted:
            held.credit_note = crediting.credit(
                held.invoice,
                wanted={held.line.n: wanted},
                seen=sum(line.credited for line in lines),
                why=_on_paper(held, words),
                actor=actor,
                now=now,
            )
        else:
            held.credit_note = _gave_back(held)
        ended(held, DisputeStatus.ACCEPTED, minor=wanted, words=words, actor=actor, now=now)
        return held


@transaction.atomic
def decline(found: Dispute, *, answer: str, actor: Actor, now: datetime) -> Dispute:
    """Leave the invoice as it is, for a reason that the tenant reads; raise Invalid without one, or DisputeOver."""
    words = said(answer, field="answer")
    with as_tenant(found.tenant_id):
        held = claim(found)
        ended(held, DisputeStatus.DECLINED, minor=held.minor, words=words, actor=actor, now=now)
        return held


def _wanted(held: Dispute, line: Left, minor: int | None) -> int:
    """Return what is to be given back, 0 where nothing is left of the line; Invalid for what cannot be."""
    most = min(held.minor, line.left)
    if minor is None:
        return most
    if not 0 < minor <= held.minor:
        raise Invalid(
            "amount",
            f"Up to {Money(held.minor, held.currency)} is in question.",
            fix="Give back at most that; a credit note can give back more.",
        )
    if minor > most:
        raise Invalid(
            "amount",
            f"Of line {line.n} {Money(line.credited, held.currency)} was given back by now: no more than"
            f" {Money(most, held.currency)} is left.",
            fix="Leave the amount out: what is left of it is given back then.",
        )
    return minor


def _usual(held: Dispute, wanted: int) -> str:
    """Return what is said to the tenant where the operator says nothing."""
    if wanted == held.minor:
        return "You are right: all of it is given back."
    if wanted:
        part, all_of_it = Money(wanted, held.currency), Money(held.minor, held.currency)
        return f"You are right about a part: {part} of {all_of_it} is given back."
    return "You are right: it was given back before."


def _on_paper(held: Dispute, words: str) -> str:
    """Return the reason that stands on the credit note: the answer, or where to read one that is longer."""
    if len(words) <= evicting.LONGEST:
        return words
    return f"Line {held.line.n} was disputed; the answer stands with the dispute on the invoice's page."


def _gave_back(held: Dispute) -> CreditNote:
    """Return the latest credit note of a line of which nothing is left."""
    rows = CreditNoteLine.objects.filter(line=held.line_id).select_related("credit_note")
    return rows.latest("credit_note__issued_at", "pk").credit_note
