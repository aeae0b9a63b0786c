"""An operator answers a dispute: gives back all of it or a part, by a credit note, or says why not."""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money
from billing.models import Dispute, DisputeStatus
from billing.services import crediting
from billing.services.disputes.asking import claim, ended, said
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant


@transaction.atomic
def accept(found: Dispute, *, minor: int | None, answer: str, actor: Actor, now: datetime) -> Dispute:
    """Give back so many minor units of what is in question, with the tax on them; None: all of it.

    Raises Invalid for more than is in question or left of the line, NotCreditable while a payment is under way, and
    DisputeOver for a dispute that has ended.
    """
    with as_tenant(found.tenant_id):
        held = claim(found)
        wanted = held.minor if minor is None else minor
        if not 0 < wanted <= held.minor:
            raise Invalid(
                "amount",
                f"Up to {Money(held.minor, held.currency)} is in question.",
                fix="Give back at most that; a credit note can give back more.",
            )
        words = said(answer, field="answer") if answer.strip() else f"You are right: {held.reason}"[:150]
        seen = sum(line.credited for line in crediting.left(held.invoice))
        held.credit_note = crediting.credit(
            held.invoice, wanted={held.line.n: wanted}, seen=seen, why=words[:150], actor=actor, now=now
        )
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
