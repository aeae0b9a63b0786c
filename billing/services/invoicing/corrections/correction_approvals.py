"""Approval of corrections by one or two people other than the author.

What they saw is what is booked.
"""

from datetime import datetime

from django.db import transaction

from billing.models import Correction
from billing.models.corrections import CorrectionKind, CorrectionStatus
from billing.services.invoicing.corrections import correction_bookings
from billing.services.invoicing.corrections.correction_proposals import NotCorrectable, lock_proposal, record_decision
from ports import outbox
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError


class OwnProposal(ProblemError):
    code, status, title = "own-proposal", 409, "Another operator has to approve the correction"


class CorrectionOutdated(ProblemError):
    code, status, title = "correction-outdated", 409, "The charges have changed since the preview"


@transaction.atomic
def approve_correction(correction: Correction, *, seen: str, actor: Actor, now: datetime) -> Correction:
    """Approve the diff that was `seen`, identified by its fingerprint.

    The last required approval books it: a lease's correction at once, a price's by a worker, tenant by
    tenant.

    Raises OwnProposal for the author or an earlier approver, CorrectionOutdated if another diff was seen or the
    charges changed, and NotCorrectable if the correction is closed.
    """
    held = lock_proposal(correction)
    if actor.id in (held.author_id, held.approver_id):
        done = "proposed" if actor.id == held.author_id else "approved"
        raise OwnProposal(f"You have {done} this correction yourself.", fix="Ask another operator to review it.")
    if seen != held.seal:
        raise CorrectionOutdated("The preview has changed since you opened it.", fix="Review it again.")
    who = {"id": actor.id, "label": actor.label or actor.kind}
    if held.approver_id is None:
        held.approver_id, held.approver, held.approved_at = who["id"], who["label"], now
    else:
        held.second_approver_id, held.second_approver, held.second_approved_at = who["id"], who["label"], now
    if not held.needs_two or held.second_approver_id:
        held.status = CorrectionStatus.APPROVED
    held.save()
    record_decision("correction.approve", held, actor=actor, now=now)
    if held.status == CorrectionStatus.APPROVED:
        _start_booking(held, now)
    return held


def _start_booking(held: Correction, now: datetime) -> None:
    if held.kind == CorrectionKind.PRICE:
        outbox.enqueue("billing.book_corrections", held.pk, now=now)
        return
    (share,) = correction_bookings.tenant_corrections(held)
    if not correction_bookings.book_tenant_correction(held, share.tenant_id, now=now):
        raise CorrectionOutdated(
            "The charges no longer match the preview.", fix="Withdraw the correction and propose it again."
        )
    correction_bookings.close_if_settled(held, now=now)


__all__ = ["CorrectionOutdated", "NotCorrectable", "OwnProposal", "approve_correction"]
