"""Booking of approved corrections, tenant by tenant: exactly what was shown, once.

Each tenant is booked in its own transaction; after a crash the next run continues with the rest.
"""

from datetime import datetime

import structlog
from django.db import DatabaseError, connection, transaction

from billing.domain.corrections import ChargedInterval, LineChange, fingerprint_changes
from billing.models import BillingRun, CorrectedInterval, Correction, Invoice, TenantCorrection
from billing.models.corrections import CorrectionStatus, TenantCorrectionStatus
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.corrections.correction_plans import CorrectionPlan, plan_correction
from billing.services.invoicing.credit_notes import NotCreditable
from billing.services.periods import billing_periods
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope, tenant_scope

log = structlog.get_logger(__name__)
MAX_ERROR_LENGTH = 300


def tenant_corrections(correction: Correction) -> list[TenantCorrection]:
    """Return the shares of a correction, one per tenant."""
    with staff_scope():
        return list(TenantCorrection.objects.filter(correction=correction).order_by("tenant_id"))


def book_approved_corrections(*, now: datetime) -> int:
    """Continue all approved corrections; return how many tenants were settled. Idempotent."""
    settled = 0
    for correction in Correction.objects.filter(status=CorrectionStatus.APPROVED).order_by("proposed_at"):
        for share in tenant_corrections(correction):
            if share.status == TenantCorrectionStatus.WAITING:
                settled += _try_book(correction, share, now)
        close_if_settled(correction, now=now)
    return settled


def _try_book(correction: Correction, share: TenantCorrection, now: datetime) -> bool:
    """Settle one tenant; record why it cannot be settled now, and retry later."""
    try:
        book_tenant_correction(correction, share.tenant_id, now=now)
    except (ProblemError, DatabaseError) as held_up:
        why = f"{held_up.detail} {held_up.fix.text}" if isinstance(held_up, ProblemError) else str(held_up).strip()
        write_log = log.warning if isinstance(held_up, NotCreditable) else log.error
        write_log("correction postponed", correction=correction.pk, tenant=share.tenant_id, why=why)
        with tenant_scope(share.tenant_id):
            TenantCorrection.objects.filter(pk=share.pk).update(last_error=why[:MAX_ERROR_LENGTH])
        return False
    return True


@transaction.atomic
def book_tenant_correction(correction: Correction, tenant_id: str, *, now: datetime) -> bool:
    """Book a correction for a tenant as it was shown.

    Returns False, and books nothing, if the result would differ now. Raises NotCreditable while a
    payment of an invoice that it credits is pending.
    """
    with tenant_scope(tenant_id):
        billing_periods.take_tenant_billing_locks([tenant_id])
        share = TenantCorrection.objects.select_for_update().get(correction=correction, tenant=tenant_id)
        if share.status != TenantCorrectionStatus.WAITING:
            return share.status == TenantCorrectionStatus.BOOKED
        tenant = Tenant.objects.get(pk=tenant_id)
        try:
            found = plan_correction(correction, tenant, now=now)
        except ProblemError:
            found = CorrectionPlan((), ())
        equal = fingerprint_changes(found.changes) == share.seal
        if equal:
            _write(correction, share, found, tenant, now)
        share.status = TenantCorrectionStatus.BOOKED if equal else TenantCorrectionStatus.OUTDATED
        share.settled_at, share.last_error = now, ""
        share.save(update_fields=["status", "settled_at", "last_error"])
        return equal


def close_if_settled(correction: Correction, *, now: datetime) -> None:
    """Mark a correction as booked once all its tenants are settled."""
    if all(share.status != TenantCorrectionStatus.WAITING for share in tenant_corrections(correction)):
        Correction.objects.filter(pk=correction.pk, status=CorrectionStatus.APPROVED).update(
            status=CorrectionStatus.BOOKED, closed_at=now
        )
        correction.refresh_from_db(fields=["status", "closed_at"])


def _write(
    correction: Correction, share: TenantCorrection, found: CorrectionPlan, tenant: Tenant, now: datetime
) -> None:
    who = Actor("staff", correction.second_approver_id or correction.approver_id or "",
                correction.second_approver or correction.approver)  # fmt: skip
    CorrectedInterval.objects.bulk_create(
        [_corrected_interval(share, n, each) for n, each in enumerate(found.parts)], batch_size=1000
    )
    started = {"started_at": now, "finished_at": now}
    run, _ = BillingRun.objects.get_or_create(label=f"correct {correction.pk}", defaults=started)
    with connection.cursor() as cursor:
        cursor.execute(load_sql("billing/invoicing/charge_corrections"), {"share": share.pk, "run": run.pk})
    for invoice_id in sorted({change.invoice for change in found.changes if change.final and change.minor}):
        _credit(correction, invoice_id, found.changes, who, now)
    drafts.refresh_drafts(tenant, now=now)
    audit.record(
        "correction.book",
        correction,
        correction.lease_id or f"price version {correction.price_version_id}",
        tenant.pk,
        actor=who,
        now=now,
        amount=found.minor,
        currency=correction.currency,
        reason=correction.reason,
    )


def _credit(
    correction: Correction, invoice_id: str, changes: tuple[LineChange, ...], who: Actor, now: datetime
) -> None:
    """Credit a final invoice with what the correction takes off its lines."""
    invoice = Invoice.objects.get(pk=invoice_id)
    wanted = {
        change.line: -change.minor
        for change in changes
        if change.invoice == invoice_id and change.final and change.minor
    }
    credit_notes.issue_credit_note(
        invoice,
        wanted=wanted,
        seen=sum(line.credited for line in credit_notes.creditable_lines(invoice)),
        why=correction.reason,
        actor=who,
        now=now,
        correction=correction.pk,
    )


def _corrected_interval(share: TenantCorrection, n: int, piece: ChargedInterval) -> CorrectedInterval:
    return CorrectedInterval(
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
