"""Others than the author approve a correction: one, or two from the limit on. What they saw is what is booked."""

from datetime import datetime

from django.db import transaction

from billing.models import Correction
from billing.models.corrections import CorrectionKind, CorrectionStatus
from billing.services.corrections import booking
from billing.services.corrections.proposing import NotCorrectable, claim, record
from ports import doorbell
from tenants.services.actors import Actor
from tenants.services.refusals import Refused


class OwnProposal(Refused):
    code, status, title = "own-proposal", 409, "Somebody else has to approve it"


class Outdated(Refused):
    code, status, title = "correction-outdated", 409, "What was charged has changed since"


@transaction.atomic
def approve(correction: Correction, *, seen: str, actor: Actor, now: datetime) -> Correction:
    """Approve what was `seen`, by its seal. The last approval that is needed books it: a lease's at once, a price's by
    a worker, tenant by tenant.

    Raises OwnProposal for who has proposed or approved it, Outdated where another diff was seen or what would be
    booked is another now, NotCorrectable for one that is over.
    """
    held = claim(correction)
    if actor.id in (held.author_id, held.approver_id):
        done = "proposed" if actor.id == held.author_id else "approved"
        raise OwnProposal(f"You have {done} it yourself.", fix="Ask a colleague to look at it.")
    if seen != held.seal:
        raise Outdated("You saw another diff than the one that stands.", fix="Look at it once more.")
    who = {"id": actor.id, "label": actor.label or actor.kind}
    if held.approver_id is None:
        held.approver_id, held.approver, held.approved_at = who["id"], who["label"], now
    else:
        held.second_approver_id, held.second_approver, held.second_approved_at = who["id"], who["label"], now
    if not held.needs_two or held.second_approver_id:
        held.status = CorrectionStatus.APPROVED
    held.save()
    record("correction.approve", held, actor=actor, now=now)
    if held.status == CorrectionStatus.APPROVED:
        _begin(held, now)
    return held


def _begin(held: Correction, now: datetime) -> None:
    if held.kind == CorrectionKind.PRICE:
        doorbell.ring("billing.book_corrections", held.pk, now=now)
        return
    (share,) = booking.shares(held)
    if not booking.book(held, share.tenant_id, now=now):
        raise Outdated(
            "What would be booked is no longer what was shown.", fix="Withdraw it and propose it anew."
        )
    booking.close(held, now=now)


__all__ = ["NotCorrectable", "Outdated", "OwnProposal", "approve"]
