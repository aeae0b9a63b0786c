"""Operators' answers to disputes: a credit of all or part of it, or a refusal."""

from datetime import datetime

from django.db import transaction

from billing.domain.credit_notes import LineCreditLimit
from billing.domain.money import Money
from billing.models import CreditNote, CreditNoteLine, Dispute, DisputeStatus
from billing.services.invoicing import credit_notes
from billing.services.invoicing.disputes.dispute_requests import close_dispute, lock_open_dispute, validated_reason
from broker.services.leases.lifecycle import eviction
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope


@transaction.atomic
def accept_dispute(found: Dispute, *, minor: int | None, answer: str, actor: Actor, now: datetime) -> Dispute:
    """Credit an amount of a dispute with its tax; None credits all that is left.

    If the whole line was credited meanwhile, that credit note is referenced and nothing more is booked.

    Raises InvalidValue for more than is disputed or left of the line, NotCreditable while a payment is
    pending, and DisputeClosed for a closed dispute.
    """
    with tenant_scope(found.tenant_id):
        held = lock_open_dispute(found)
        words = validated_reason(answer, field="answer") if answer.strip() else ""
        lines = credit_notes.creditable_lines(held.invoice)
        wanted = _amount_to_credit(held, next(line for line in lines if line.n == held.line.n), minor)
        words = words or _default_answer(held, wanted)
        if wanted:
            held.credit_note = credit_notes.issue_credit_note(
                held.invoice,
                wanted={held.line.n: wanted},
                seen=sum(line.credited for line in lines),
                why=_credit_note_reason(held, words),
                actor=actor,
                now=now,
            )
        else:
            held.credit_note = _latest_credit_note(held)
        close_dispute(held, DisputeStatus.ACCEPTED, minor=wanted, words=words, actor=actor, now=now)
        return held


@transaction.atomic
def decline_dispute(found: Dispute, *, answer: str, actor: Actor, now: datetime) -> Dispute:
    """Decline a dispute with a reason that the tenant reads.

    Raises InvalidValue without a reason, and DisputeClosed for a closed dispute.
    """
    words = validated_reason(answer, field="answer")
    with tenant_scope(found.tenant_id):
        held = lock_open_dispute(found)
        close_dispute(held, DisputeStatus.DECLINED, minor=held.minor, words=words, actor=actor, now=now)
        return held


def _amount_to_credit(held: Dispute, line: LineCreditLimit, minor: int | None) -> int:
    """Return the amount to credit, 0 if nothing is left of the line; raise InvalidValue."""
    most = min(held.minor, line.remaining)
    if minor is None:
        return most
    if not 0 < minor <= held.minor:
        raise InvalidValue(
            "amount",
            f"At most {Money(held.minor, held.currency)} is disputed.",
            fix="Enter a lower amount. A credit note can credit more.",
        )
    if minor > most:
        raise InvalidValue(
            "amount",
            f"{Money(line.credited, held.currency)} of line {line.n} was already credited; only"
            f" {Money(most, held.currency)} is left.",
            fix="Leave the amount empty to credit the rest.",
        )
    return minor


def _default_answer(held: Dispute, wanted: int) -> str:
    """Return the default answer to the tenant."""
    if wanted == held.minor:
        return "The dispute is accepted. The full amount is credited."
    if wanted:
        part, all_of_it = Money(wanted, held.currency), Money(held.minor, held.currency)
        return f"The dispute is partly accepted. {part} of {all_of_it} is credited."
    return "The dispute is accepted. The amount was credited before."


def _credit_note_reason(held: Dispute, words: str) -> str:
    """Return the reason for the credit note; a long answer is only referenced."""
    if len(words) <= eviction.MAX_REASON_LENGTH:
        return words
    return f"Line {held.line.n} was disputed. The invoice's page shows the answer."


def _latest_credit_note(held: Dispute) -> CreditNote:
    """Return the latest credit note of a fully credited line."""
    rows = CreditNoteLine.objects.filter(line=held.line_id).select_related("credit_note")
    return rows.latest("credit_note__issued_at", "pk").credit_note
