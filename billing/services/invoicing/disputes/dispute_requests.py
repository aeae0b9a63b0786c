"""Disputes opened and withdrawn by tenants, for lines of a final invoice."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Count

from billing.domain.credit_notes import CreditTooLarge, LineCreditLimit, check_credit
from billing.domain.money import InvalidAmount, parse_amount
from billing.models import Dispute, DisputeStatus, DisputeStep, Invoice
from billing.models.disputes import MAX_REASON_LENGTH
from billing.services.invoicing import credit_notes
from billing.services.invoicing.disputes import dispute_emails
from billing.services.payments import disputed_amounts
from billing.services.payments.dunning import overdue_status
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope

MAX_LINES = 200
MAX_DISPUTES_PER_LINE = 10


class NotDisputable(ProblemError):
    code, status, title = "not-disputable", 409, "The line cannot be disputed now"


class DisputeClosed(ProblemError):
    code, status, title = "dispute-over", 409, "The dispute is already closed"


@transaction.atomic
def dispute_lines(
    invoice: Invoice, *, lines: Mapping[int, int | None], reason: str, actor: Actor, now: datetime
) -> Sequence[Dispute]:
    """Dispute lines by number, each with an amount before tax.

    Amounts are minor units; None disputes all that is left of the line. Raises InvalidValue for unknown
    lines, impossible amounts or a missing reason, and NotDisputable for a draft or void invoice, after
    the dispute window, and for a line that is already disputed or was disputed too often. Then nothing
    is written.
    """
    words = validated_reason(reason)
    with tenant_scope(invoice.tenant_id):
        # Lock the invoice first, like credit notes and payments.
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period").get(pk=invoice.pk)
        _check_disputable(invoice, now)
        wanted = _validated_amounts(invoice, lines)
        _check_not_disputed(invoice, list(wanted))
        made = _create_disputes(invoice, list(wanted.values()), words, actor, now)
        dispute_emails.email_dispute_step(Tenant.objects.get(pk=invoice.tenant_id), invoice, made)
        return made


@transaction.atomic
def withdraw_dispute(found: Dispute, *, actor: Actor, now: datetime) -> Dispute:
    """Withdraw an open dispute; raise DisputeClosed for a closed one."""
    with tenant_scope(found.tenant_id):
        held = lock_open_dispute(found)
        close_dispute(held, DisputeStatus.WITHDRAWN, minor=held.minor, words="", actor=actor, now=now)
        return held


def validated_reason(reason: str, *, field: str = "reason") -> str:
    """Return the trimmed text, or raise InvalidValue if it is empty or too long."""
    text = " ".join(reason.split())
    if not text or len(text) > MAX_REASON_LENGTH or not text.isprintable():
        raise InvalidValue(
            field, f"A reason must have 1 to {MAX_REASON_LENGTH} characters.", fix="Enter a short reason."
        )
    return text


def parse_optional_amount(text: str | None, currency: str) -> int | None:
    """Parse an amount into minor units, or raise InvalidValue; None stays None."""
    try:
        return None if text is None else parse_amount(text, currency)
    except InvalidAmount as error:
        raise InvalidValue("amount", str(error), fix="Enter an amount such as 12.50, or leave it empty.") from error


def lock_open_dispute(found: Dispute) -> Dispute:
    """Lock the invoice and an open dispute and return it, or raise DisputeClosed."""
    Invoice.objects.select_for_update().get(pk=found.invoice_id)
    held = Dispute.objects.select_for_update(of=("self",)).select_related("invoice__period", "line").get(pk=found.pk)
    if held.status != DisputeStatus.OPEN:
        raise DisputeClosed(f"It was closed as {held.status} on {held.closed_at:%d %b %Y}.", fix="Reload the page.")
    return held


def close_dispute(held: Dispute, status: DisputeStatus, *, minor: int, words: str, actor: Actor, now: datetime) -> None:
    """Close a dispute: record it, e-mail the tenant, and write the audit log."""
    held.status, held.closed_at, held.answer = status, now, words
    held.save(update_fields=["status", "closed_at", "answer", "credit_note"])
    _record_steps([held], n=1, minor=minor, words=words, actor=actor, now=now)
    tenant = Tenant.objects.get(pk=held.tenant_id)
    # Reload: a credit note has lowered what is due.
    held.invoice = Invoice.objects.select_related("period").get(pk=held.invoice_id)
    dispute_emails.email_dispute_step(tenant, held.invoice, [held])
    overdue_status.restore_account_status(tenant, held.invoice, now=now)


def _check_disputable(invoice: Invoice, now: datetime) -> None:
    if invoice.status not in credit_notes.CREDITABLE:
        raise NotDisputable(
            f"This invoice is {invoice.status}.", fix="Only lines of a final invoice, paid or not, can be disputed."
        )
    until = disputed_amounts.dispute_window_end(invoice)
    if until is None:
        raise NotDisputable("Disputes are disabled in this installation.", fix="Contact your operator.")
    if now >= until:
        raise NotDisputable(
            f"Lines of invoice {invoice} could be disputed until the end of"
            f" {_last_day(until, invoice.period.time_zone)}.",
            fix="Contact your operator, who can still issue a credit note.",
        )


def _last_day(until: datetime, zone: str) -> str:
    return f"{disputed_amounts.last_day_before(until, ZoneInfo(zone)):%d %B %Y}"


def _validated_amounts(invoice: Invoice, lines: Mapping[int, int | None]) -> dict[int, tuple[LineCreditLimit, int]]:
    """Return each line with its disputed amount, or raise InvalidValue."""
    if len(lines) > MAX_LINES:
        raise InvalidValue(
            "lines", f"At most {MAX_LINES} lines can be disputed at once.", fix="Dispute the other lines separately."
        )
    known = {line.n: line for line in credit_notes.creditable_lines(invoice)}
    wanted = {n: known[n].remaining if minor is None and n in known else minor or 0 for n, minor in lines.items()}
    if not wanted:
        raise InvalidValue("lines", "No lines were given.", fix="Give the numbers of the lines.")
    try:
        check_credit(known.values(), wanted, invoice.currency)
    except CreditTooLarge as much:
        raise InvalidValue("lines", str(much), fix="Check the remaining amount of each line.") from much
    return {n: (known[n], minor) for n, minor in sorted(wanted.items())}


def _check_not_disputed(invoice: Invoice, numbers: Sequence[int]) -> None:
    of_them = Dispute.objects.filter(invoice=invoice, line__n__in=numbers)
    taken = of_them.filter(status=DisputeStatus.OPEN)
    if other := taken.select_related("line").order_by("line__n").first():
        raise NotDisputable(
            f"Line {other.line.n} is already disputed since {other.opened_at:%d %b %Y}.",
            fix="Wait for the answer, or withdraw that dispute first.",
        )
    often = of_them.values("line__n").annotate(times=Count("pk")).filter(times__gte=MAX_DISPUTES_PER_LINE)
    if worn := often.order_by("line__n").first():
        raise NotDisputable(
            f"Line {worn['line__n']} was already disputed {MAX_DISPUTES_PER_LINE} times.",
            fix="Contact your operator, who can still issue a credit note.",
        )


def _create_disputes(
    invoice: Invoice, wanted: Sequence[tuple[LineCreditLimit, int]], reason: str, actor: Actor, now: datetime
) -> Sequence[Dispute]:
    lines = {line.n: line for line in invoice.lines.filter(n__in=[left.n for left, _ in wanted])}
    made = Dispute.objects.bulk_create(
        Dispute(
            tenant_id=invoice.tenant_id,
            invoice=invoice,
            line=lines[left.n],
            minor=minor,
            tax_minor=left.tax_with(minor),
            currency=invoice.currency,
            reason=reason,
            opened_at=now,
            opened_by=actor.label or actor.kind,
        )
        for left, minor in wanted
    )
    _record_steps(made, n=0, minor=None, words=reason, actor=actor, now=now)
    return made


def _record_steps(
    disputes: Sequence[Dispute], *, n: int, minor: int | None, words: str, actor: Actor, now: datetime
) -> None:
    """Record a step and an audit entry for each dispute.

    `minor` None means the whole disputed amount.
    """
    by = actor.label or actor.kind
    amounts = {held.pk: held.minor if minor is None else minor for held in disputes}
    DisputeStep.objects.bulk_create(
        DisputeStep(
            tenant_id=held.tenant_id,
            dispute=held,
            n=n,
            status=held.status,
            minor=amounts[held.pk],
            words=words,
            by=by,
            at=now,
        )
        for held in disputes
    )
    for held in disputes:
        audit.record(
            f"dispute.{VERBS[DisputeStatus(held.status)]}",
            held,
            f"line {held.line.n} of {held.invoice}",
            actor=actor,
            now=now,
            invoice=held.invoice_id,
            amount=amounts[held.pk],
            currency=held.currency,
            **({"reason": words} if words else {}),
        )


VERBS = {
    DisputeStatus.OPEN: "open",
    DisputeStatus.ACCEPTED: "accept",
    DisputeStatus.DECLINED: "decline",
    DisputeStatus.WITHDRAWN: "withdraw",
}
