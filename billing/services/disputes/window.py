"""Until when the lines of an invoice can be disputed, and what of it is disputed now."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import BigIntegerField, F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from billing.domain.disputing import last_moment, undisputed
from billing.models import Dispute, DisputeStatus, Invoice


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
    return undisputed(invoice.due, [each.total for each in of(invoice)])


def of(invoice: Invoice) -> Sequence[Dispute]:
    """Return the disputes of its lines that are open."""
    return list(Dispute.objects.filter(invoice=invoice, status=DisputeStatus.OPEN))


def decided_at(invoice: Invoice) -> datetime | None:
    """Return when the last of its disputes was answered; whoever withdraws one is not given time for it."""
    answered = Dispute.objects.filter(
        invoice=invoice, status__in=(DisputeStatus.ACCEPTED, DisputeStatus.DECLINED)
    )
    return answered.order_by("-closed_at").values_list("closed_at", flat=True).first()


def to_chase(invoices: QuerySet[Invoice]) -> QuerySet[Invoice]:
    """Leave only invoices on which more is due than is disputed."""
    held = (
        Dispute.objects.filter(invoice=OuterRef("pk"), status=DisputeStatus.OPEN)
        .order_by()
        .values("invoice")
        .annotate(held=Sum(F("minor") + F("tax_minor")))
        .values("held")
    )
    held_of = Coalesce(Subquery(held, output_field=BigIntegerField()), 0)
    return invoices.annotate(disputed=held_of).filter(total__gt=F("settled") + F("disputed"))
