"""Until when the lines of an invoice can be disputed, and what of it is disputed now."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import (
    BigIntegerField,
    BooleanField,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce, Least

from billing.domain.disputing import last_moment, rests, undisputed
from billing.models import CreditNoteLine, Dispute, DisputeStatus, Invoice

BACK = F("minor") + F("tax_minor")  # of a dispute, or of a credit note's line


def closes_at(invoice: Invoice) -> datetime | None:
    """Return before when its lines can be disputed; None of a draft and where nobody may. Needs its period.

    What became final before an invoice said so has as many days as one that becomes final today.
    """
    if invoice.finalized_at is None:
        return None
    return invoice.disputable_until or stated(invoice.finalized_at, invoice.period.time_zone)


def stated(final_at: datetime, time_zone: str) -> datetime | None:
    """Return what an invoice that becomes final says of it."""
    days = settings.DISPUTE_DAYS
    return last_moment(final_at, ZoneInfo(time_zone), days=days) if days else None


def last_day(until: datetime, zone: ZoneInfo) -> date:
    """Return the last day, in a time zone, on which something is possible that ends before `until`."""
    return (until - timedelta(seconds=1)).astimezone(zone).date()


def chased(invoice: Invoice) -> int:
    """Return what of an invoice is due and not disputed; minor units."""
    return undisputed(invoice.due, [each.held for each in of(invoice)])


def of(invoice: Invoice) -> Sequence[Any]:
    """Return the disputes of its lines that are open and about something that was not given back meanwhile.

    What each holds back (`held`), with tax, is what was disputed, or what is left of the line where that is less.
    """
    return list(in_question().filter(invoice=invoice))


def in_question() -> QuerySet[Any]:
    """Return open disputes with what each `held` back, minor units with tax; those of nothing are left out."""
    return with_left(Dispute.objects.filter(status=DisputeStatus.OPEN)).filter(held__gt=0)


def with_left(disputes: QuerySet[Dispute]) -> QuerySet[Any]:
    """Add what is `left` of each one's line with its tax, what of it is `held` back while it is open, what its credit
    note `returned` of the line, and whether that is `partly` what was in question.
    """
    lines = CreditNoteLine.objects.filter(line=OuterRef("line")).order_by()
    back = lines.values("line").annotate(back=Sum(BACK)).values("back")
    own = lines.filter(credit_note=OuterRef("credit_note")).annotate(back=BACK).values("back")
    left = F("line__minor") + F("line__tax_minor") - _or_nothing(back)
    added = disputes.annotate(left=left, returned=_or_nothing(own))
    partly = Q(status=DisputeStatus.ACCEPTED, left__gt=0, returned__lt=BACK)
    return added.annotate(
        held=Least(BACK, F("left")), partly=ExpressionWrapper(partly, output_field=BooleanField())
    )


def _or_nothing(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows, output_field=BigIntegerField()), 0)


def resting(invoice: Invoice, *, since: datetime) -> int:
    """Return what of an invoice was disputed, is still due, and was answered later than `since`; with tax.

    It has its days anew from the answer on. Whoever withdrew gained none.
    """
    answered = (DisputeStatus.ACCEPTED, DisputeStatus.DECLINED)
    found = Dispute.objects.filter(invoice=invoice, status__in=answered, closed_at__gt=since)
    return rests((each.line_id, each.total - each.returned, each.left) for each in with_left(found))


def decided_at(invoice: Invoice) -> datetime | None:
    """Return when the last of its disputes was answered; whoever withdraws one is not given time for it."""
    answered = Dispute.objects.filter(
        invoice=invoice, status__in=(DisputeStatus.ACCEPTED, DisputeStatus.DECLINED)
    )
    return answered.order_by("-closed_at").values_list("closed_at", flat=True).first()


def to_chase(invoices: QuerySet[Invoice]) -> QuerySet[Invoice]:
    """Leave only invoices on which more is due than is disputed."""
    held = (
        in_question()
        .filter(invoice=OuterRef("pk"))
        .order_by()
        .values("invoice")
        .annotate(all=Sum("held"))
        .values("all")
    )
    return invoices.annotate(disputed=_or_nothing(held)).filter(total__gt=F("settled") + F("disputed"))
