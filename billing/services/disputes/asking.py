"""A tenant says that it should not have been charged: so much of some lines of a final invoice, for a reason."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Count

from billing.domain.crediting import Left, TooMuch, judge
from billing.domain.money import NotAnAmount, minor_of
from billing.models import Dispute, DisputeStatus, DisputeStep, Invoice
from billing.models.disputes import LONGEST_REASON
from billing.services import crediting
from billing.services.disputes import letters, window
from billing.services.dunning import standing
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant

MOST_LINES = 200
MOST_OF_A_LINE = 10


class NotDisputable(Refused):
    code, status, title = "not-disputable", 409, "This cannot be disputed now"


class DisputeOver(Refused):
    code, status, title = "dispute-over", 409, "This dispute is over"


@transaction.atomic
def dispute(
    invoice: Invoice, *, lines: Mapping[int, int | None], reason: str, actor: Actor, now: datetime
) -> Sequence[Dispute]:
    """Dispute these lines, by number, each with so many minor units before tax; None: all that is left of it.

    Raises Invalid for lines and amounts that are not there and without a reason, NotDisputable for a draft, a void
    invoice, after its window, and for a line that is disputed already or was as often as it may be. Then nothing is
    written.
    """
    words = said(reason)
    with as_tenant(invoice.tenant_id):
        # The invoice first, as whoever credits or pays it does.
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period").get(pk=invoice.pk)
        _check(invoice, now)
        wanted = _judged(invoice, lines)
        _check_free(invoice, list(wanted))
        made = _open(invoice, list(wanted.values()), words, actor, now)
        letters.write(Tenant.objects.get(pk=invoice.tenant_id), invoice, made)
        return made


@transaction.atomic
def withdraw(found: Dispute, *, actor: Actor, now: datetime) -> Dispute:
    """Take an open dispute back; raise DisputeOver for one that has ended."""
    with as_tenant(found.tenant_id):
        held = claim(found)
        ended(held, DisputeStatus.WITHDRAWN, minor=held.minor, words="", actor=actor, now=now)
        return held


def said(reason: str, *, field: str = "reason") -> str:
    """Return the words without their borders, or raise Invalid when there are none or too many."""
    text = " ".join(reason.split())
    if not text or len(text) > LONGEST_REASON or not text.isprintable():
        raise Invalid(
            field, f"A reason has 1 to {LONGEST_REASON} characters.", fix="Say in a few sentences why."
        )
    return text


def amount_of(text: str | None, currency: str) -> int | None:
    """Read an amount as it is typed, in minor units, or raise Invalid; None where nothing is said."""
    try:
        return None if text is None else minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid("amount", str(odd), fix="Type an amount such as 12.50, or leave it out.") from odd


def claim(found: Dispute) -> Dispute:
    """Return an open dispute behind its invoice's lock and its own, or raise DisputeOver."""
    Invoice.objects.select_for_update().get(pk=found.invoice_id)
    held = (
        Dispute.objects.select_for_update(of=("self",))
        .select_related("invoice__period", "line")
        .get(pk=found.pk)
    )
    if held.status != DisputeStatus.OPEN:
        raise DisputeOver(
            f"It is {held.status} since {held.closed_at:%d %b %Y}.", fix="Look at it once more."
        )
    return held


def ended(
    held: Dispute, status: DisputeStatus, *, minor: int, words: str, actor: Actor, now: datetime
) -> None:
    """End a dispute in this way: note it, tell its tenant by letter, and write it in the trail."""
    held.status, held.closed_at, held.answer = status, now, words
    held.save(update_fields=["status", "closed_at", "answer", "credit_note"])
    _note([held], n=1, minor=minor, words=words, actor=actor, now=now)
    tenant = Tenant.objects.get(pk=held.tenant_id)
    # As it is now: a credit note has made less of it due.
    held.invoice = Invoice.objects.select_related("period").get(pk=held.invoice_id)
    letters.write(tenant, held.invoice, [held])
    standing.again(tenant, held.invoice, now=now)


def _check(invoice: Invoice, now: datetime) -> None:
    if invoice.status not in crediting.CREDITABLE:
        raise NotDisputable(
            f"This invoice is {invoice.status}.",
            fix="Only lines of a final invoice, paid or not, can be disputed.",
        )
    until = window.closes_at(invoice)
    if until is None:
        raise NotDisputable("No charge can be disputed here.", fix="Write to your operator about it.")
    if now >= until:
        raise NotDisputable(
            f"Lines of invoice {invoice} could be disputed until the end of"
            f" {_last_day(until, invoice.period.time_zone)}.",
            fix="Write to your operator about it; what should not have been charged can still be given back.",
        )


def _last_day(until: datetime, zone: str) -> str:
    return f"{window.last_day(until, ZoneInfo(zone)):%d %B %Y}"


def _judged(invoice: Invoice, lines: Mapping[int, int | None]) -> dict[int, tuple[Left, int]]:
    """Return each line with what is in question of it, or raise Invalid."""
    if len(lines) > MOST_LINES:
        raise Invalid("lines", f"At most {MOST_LINES} lines at once.", fix="Dispute the others apart.")
    known = {line.n: line for line in crediting.left(invoice)}
    wanted = {n: known[n].left if minor is None and n in known else minor or 0 for n, minor in lines.items()}
    if not wanted:
        raise Invalid("lines", "No line is named.", fix="Name the lines by their numbers.")
    try:
        judge(known.values(), wanted, invoice.currency)
    except TooMuch as much:
        raise Invalid("lines", str(much), fix="Look at what is left of each line.") from much
    return {n: (known[n], minor) for n, minor in sorted(wanted.items())}


def _check_free(invoice: Invoice, numbers: Sequence[int]) -> None:
    of_them = Dispute.objects.filter(invoice=invoice, line__n__in=numbers)
    taken = of_them.filter(status=DisputeStatus.OPEN)
    if other := taken.select_related("line").order_by("line__n").first():
        raise NotDisputable(
            f"Line {other.line.n} is disputed already, since {other.opened_at:%d %b %Y}.",
            fix="Wait for the answer, or withdraw it and dispute the line anew.",
        )
    often = of_them.values("line__n").annotate(times=Count("pk")).filter(times__gte=MOST_OF_A_LINE)
    if worn := often.order_by("line__n").first():
        raise NotDisputable(
            f"Line {worn['line__n']} was disputed {MOST_OF_A_LINE} times.",
            fix="Write to your operator about it; what should not have been charged can still be given back.",
        )


def _open(
    invoice: Invoice, wanted: Sequence[tuple[Left, int]], reason: str, actor: Actor, now: datetime
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
    _note(made, n=0, minor=None, words=reason, actor=actor, now=now)
    return made


def _note(
    disputes: Sequence[Dispute], *, n: int, minor: int | None, words: str, actor: Actor, now: datetime
) -> None:
    """Write a step of each, and a line of the trail; `minor` None: of all that is in question of it."""
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
            actor=actor,
            now=now,
            tenant_id=held.tenant_id,
            subject_id=held.pk,
            subject_label=f"line {held.line.n} of {held.invoice}",
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
