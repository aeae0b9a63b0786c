"""Usage on earlier invoices that late usage follows: facts for the invoice bundle.

What a commitment has left and which tier is reached depends on all usage of the month.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F

from billing.models import BillingPeriod, CorrectedInterval, Invoice, PriceVersion, RatedCharge
from billing.models.charges import GIB_SECONDS
from billing.models.prices import PriceModel
from billing.services.adjustments import late_adjustments
from billing.services.adjustments.commitment_adjustments import commitments_in_force
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class EarlierUsage:
    """Leases and volumes by their last interval charged before, with their quotes and corrections."""

    months: list[BillingPeriod] = field(default_factory=list)
    offerings: set[str] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)
    promised: set[int] = field(default_factory=set)
    volumes: set[str] = field(default_factory=set)
    corrected: list[CorrectedInterval] = field(default_factory=list)

    def joined(self, last: dict[str, int]) -> dict[str, int]:
        """Return the last interval of everything here and on the invoice."""
        return {key: max(last.get(key, 0), self.last.get(key, 0)) for key in last.keys() | self.last.keys()}


NONE = EarlierUsage()


def earlier_usage(invoice: Invoice) -> EarlierUsage:
    """Return the usage on earlier invoices of months with late usage on this one."""
    counted = list(late_adjustments.late_months(invoice.tenant_id, invoice.period))
    if not counted:
        return NONE
    months, here = [each.period for each in counted], invoice.period_id
    billed = [month for month in counted[0].billed if month != here]
    late = RatedCharge.objects.filter(billed_period_id=here).exclude(billed_period_id=F("period_id"))
    offerings = set(late.values_list("offering_id", flat=True).distinct()) & _offerings_with_terms(invoice, months)
    if not offerings:
        return NONE
    keys = [month.pk for month in months]
    rows = query_rows(
        "billing/documents/earlier_usage", months=keys, billed=billed, here=here, offerings=sorted(offerings)
    )
    corrected = CorrectedInterval.objects.filter(
        period_id__in=keys, billed_period_id__in=billed, offering_id__in=offerings, unit_seconds__gt=0, final=False
    )
    return EarlierUsage(
        months=months,
        offerings=offerings,
        last={lease: seq for lease, seq, _, _ in rows},
        promised={promised for *_, promised in rows if promised},
        volumes={lease for lease, _, meter, _ in rows if meter == GIB_SECONDS},
        corrected=list(corrected.select_related("share__correction").order_by("pk")),
    )


def _offerings_with_terms(invoice: Invoice, months: list[BillingPeriod]) -> set[str]:
    """Return the offerings for which it matters what else was used: with commitments or tiers."""
    found = {
        commitment.offering_id
        for month in months
        for commitment in commitments_in_force(invoice.tenant_id, month, invoice.currency)
    }
    span = DateTimeTZRange(months[0].span.lower, invoice.period.span.upper)
    tiered = PriceVersion.objects.exclude(model=PriceModel.FLAT).filter(valid__overlap=span, currency=invoice.currency)
    return found | set(tiered.values_list("offering_id", flat=True))


def with_months(known: Iterable[BillingPeriod], more: Iterable[BillingPeriod]) -> list[BillingPeriod]:
    """Return all months once, in order."""
    found = {month.pk: month for month in (*known, *more)}
    return sorted(found.values(), key=lambda month: month.span.lower)
