"""Dispute windows of invoices, and the amounts disputed now."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import BigIntegerField, BooleanField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Least

from billing.domain.disputes import answered_amount_on_hold, undisputed_due
from billing.domain.periods import deadline_after
from billing.models import CreditNoteLine, Dispute, DisputeStatus, Invoice

AMOUNT_WITH_TAX = F("minor") + F("tax_minor")  # of a dispute or a credit note line


def dispute_window_end(invoice: Invoice) -> datetime | None:
    """Return the end of an invoice's dispute window, or None if it has none.

    Drafts have none. Older invoices without a stored end get as many days as a new one. Needs the
    period.
    """
    days = settings.DISPUTE_WINDOW_DAYS
    if invoice.finalized_at is None or invoice.disputable_until or not days:
        return invoice.disputable_until
    return deadline_after(invoice.finalized_at, ZoneInfo(invoice.period.time_zone), days=days)


def last_day_before(until: datetime, zone: ZoneInfo) -> date:
    """Return the last day before a time in a time zone."""
    return (until - timedelta(seconds=1)).astimezone(zone).date()


def collectible_amount(invoice: Invoice) -> int:
    """Return the due and undisputed amount of an invoice, in minor units."""
    return undisputed_due(invoice.due, [each.held for each in open_disputes_of(invoice)])


def open_disputes_of(invoice: Invoice) -> Sequence[Any]:
    """Return the open disputes of an invoice that still concern an uncredited amount.

    `held` of each is the disputed amount with tax, or what is left of the line if that is less.
    """
    return list(open_disputes().filter(invoice=invoice))


def open_disputes() -> QuerySet[Any]:
    """Return open disputes with the amount `held` by each, with tax, leaving out zero."""
    return with_open_amounts(Dispute.objects.filter(status=DisputeStatus.OPEN)).filter(held__gt=0)


def with_open_amounts(disputes: QuerySet[Dispute]) -> QuerySet[Any]:
    """Annotate disputes with what is left of the line and how they ended.

    `left` is the uncredited rest of the line with tax, `held` the disputed part of it while open,
    `returned` what the dispute's credit note credited of the line, and `partly` whether that is less
    than was disputed.
    """
    lines = CreditNoteLine.objects.filter(line=OuterRef("line")).order_by()
    back = lines.values("line").annotate(back=Sum(AMOUNT_WITH_TAX)).values("back")
    own = lines.filter(credit_note=OuterRef("credit_note")).annotate(back=AMOUNT_WITH_TAX).values("back")
    left = F("line__minor") + F("line__tax_minor") - _or_nothing(back)
    added = disputes.annotate(left=left, returned=_or_nothing(own))
    partly = Q(status=DisputeStatus.ACCEPTED, left__gt=0, returned__lt=AMOUNT_WITH_TAX)
    return added.annotate(
        held=Least(AMOUNT_WITH_TAX, F("left")), partly=ExpressionWrapper(partly, output_field=BooleanField())
    )


def _or_nothing(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows, output_field=BigIntegerField()), 0)


def recently_answered_amount(invoice: Invoice, *, since: datetime) -> int:
    """Return the still due amount of disputes answered after `since`, with tax.

    It gets the full number of days again from the answer on. A withdrawn dispute gives no extra time.
    """
    answered = (DisputeStatus.ACCEPTED, DisputeStatus.DECLINED)
    found = Dispute.objects.filter(invoice=invoice, status__in=answered, closed_at__gt=since)
    return answered_amount_on_hold(
        (each.line_id, each.total - each.returned, each.left) for each in with_open_amounts(found)
    )


def last_answered_at(invoice: Invoice) -> datetime | None:
    """Return when the last dispute of an invoice was answered, not counting withdrawals."""
    answered = Dispute.objects.filter(invoice=invoice, status__in=(DisputeStatus.ACCEPTED, DisputeStatus.DECLINED))
    return answered.order_by("-closed_at").values_list("closed_at", flat=True).first()


def collectible_invoices(invoices: QuerySet[Invoice]) -> QuerySet[Invoice]:
    """Keep only invoices with more due than disputed."""
    held = (
        open_disputes()
        .filter(invoice=OuterRef("pk"))
        .order_by()
        .values("invoice")
        .annotate(all=Sum("held"))
        .values("all")
    )
    return invoices.annotate(disputed=_or_nothing(held)).filter(total__gt=F("settled") + F("received") + F("disputed"))
