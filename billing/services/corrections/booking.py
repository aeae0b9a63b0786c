"""Booking an approved correction, tenant by tenant: what was shown and nothing else, and each once.

A tenant is booked in a transaction of its own; whoever dies between two goes on with the next.
"""

from datetime import datetime

import structlog
from django.db import DatabaseError, connection, transaction

from billing.domain.correcting import Change, Piece, seal
from billing.models import BillingRun, Correction, CorrectionPart, CorrectionShare, Invoice
from billing.models.corrections import CorrectionStatus, ShareStatus
from billing.services import crediting, drafts, turns
from billing.services.corrections.planning import Plan, plan
from billing.services.crediting import NotCreditable
from billing.services.statements import statement
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_staff, as_tenant

log = structlog.get_logger(__name__)
LONGEST = 300


def shares(correction: Correction) -> list[CorrectionShare]:
    """Return what a correction is of each tenant."""
    with as_staff():
        return list(CorrectionShare.objects.filter(correction=correction).order_by("tenant_id"))


def book_due(*, now: datetime) -> int:
    """Go on with every approved correction; return how many tenants were settled. Repeating it books nothing twice."""
    settled = 0
    for correction in Correction.objects.filter(status=CorrectionStatus.APPROVED).order_by("proposed_at"):
        for share in shares(correction):
            if share.status == ShareStatus.WAITING:
                settled += _one(correction, share, now)
        close(correction, now=now)
    return settled


def _one(correction: Correction, share: CorrectionShare, now: datetime) -> bool:
    """Settle one tenant; what cannot be now is noted with it and tried again."""
    try:
        book(correction, share.tenant_id, now=now)
    except (Refused, DatabaseError) as held_up:
        why = f"{held_up.detail} {held_up.fix.text}" if isinstance(held_up, Refused) else str(held_up).strip()
        tell = log.warning if isinstance(held_up, NotCreditable) else log.error
        tell("a correction waits", correction=correction.pk, tenant=share.tenant_id, why=why)
        with as_tenant(share.tenant_id):
            CorrectionShare.objects.filter(pk=share.pk).update(trouble=why[:LONGEST])
        return False
    return True


@transaction.atomic
def book(correction: Correction, tenant_id: str, *, now: datetime) -> bool:
    """Book a correction for a tenant as it was shown; False where it would be another now, and then nothing is.

    Raises NotCreditable while a payment of an invoice that it credits is under way.
    """
    with as_tenant(tenant_id):
        turns.take()
        share = CorrectionShare.objects.select_for_update().get(correction=correction, tenant=tenant_id)
        if share.status != ShareStatus.WAITING:
            return share.status == ShareStatus.BOOKED
        tenant = Tenant.objects.get(pk=tenant_id)
        try:
            found = plan(correction, tenant, now=now)
        except Refused:
            found = Plan((), ())
        equal = seal(found.changes) == share.seal
        if equal:
            _write(correction, share, found, tenant, now)
        share.status = ShareStatus.BOOKED if equal else ShareStatus.OUTDATED
        share.settled_at, share.trouble = now, ""
        share.save(update_fields=["status", "settled_at", "trouble"])
        return equal


def close(correction: Correction, *, now: datetime) -> None:
    """Let a correction be booked once every tenant of it is settled."""
    if all(share.status != ShareStatus.WAITING for share in shares(correction)):
        Correction.objects.filter(pk=correction.pk, status=CorrectionStatus.APPROVED).update(
            status=CorrectionStatus.BOOKED, closed_at=now
        )
        correction.refresh_from_db(fields=["status", "closed_at"])


def _write(
    correction: Correction, share: CorrectionShare, found: Plan, tenant: Tenant, now: datetime
) -> None:
    who = Actor("staff", correction.second_approver_id or correction.approver_id or "",
                correction.second_approver or correction.approver)  # fmt: skip
    CorrectionPart.objects.bulk_create(
        [_part(share, n, each) for n, each in enumerate(found.parts)], batch_size=1000
    )
    started = {"started_at": now, "finished_at": now}
    run, _ = BillingRun.objects.get_or_create(label=f"correct {correction.pk}", defaults=started)
    with connection.cursor() as cursor:
        cursor.execute(statement("correct"), {"share": share.pk, "run": run.pk})
    for invoice_id in sorted({change.invoice for change in found.changes if change.final and change.minor}):
        _credit(correction, invoice_id, found.changes, who, now)
    drafts.refresh(tenant, now=now)
    audit.record(
        "correction.book",
        actor=who,
        now=now,
        tenant_id=tenant.pk,
        subject_id=correction.pk,
        subject_label=correction.lease_id or f"price version {correction.price_version_id}",
        amount=found.minor,
        currency=correction.currency,
        reason=correction.reason,
    )


def _credit(
    correction: Correction, invoice_id: str, changes: tuple[Change, ...], who: Actor, now: datetime
) -> None:
    """Give back of a final invoice what the correction takes off its lines."""
    invoice = Invoice.objects.get(pk=invoice_id)
    wanted = {
        change.line: -change.minor
        for change in changes
        if change.invoice == invoice_id and change.final and change.minor
    }
    crediting.credit(
        invoice,
        wanted=wanted,
        seen=sum(line.credited for line in crediting.left(invoice)),
        why=correction.reason,
        actor=who,
        now=now,
        correction=correction.pk,
    )


def _part(share: CorrectionShare, n: int, piece: Piece) -> CorrectionPart:
    return CorrectionPart(
        tenant_id=share.tenant_id,
        share=share,
        n=n,
        lease_id=piece.lease,
        seq=piece.seq,
        price_version_id=piece.version,
        period_id=piece.period,
        billed_period_id=piece.billed,
        project_id=piece.project,
        offering_id=piece.offering,
        s=piece.start,
        e=piece.end,
        quantity=piece.quantity,
        nano_per_hour=piece.nano,
        unit_seconds=piece.unit_seconds,
        exact_num=piece.exact,
        final=piece.final,
    )
