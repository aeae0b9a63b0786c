"""Invoice lines with the names of what they charge for, for pages, documents and files."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.money import exponent_of, format_minor, to_minor
from billing.models import Invoice, InvoiceAdjustment, InvoiceLine, PriceVersion
from billing.services.adjustments import month_adjustments
from billing.services.adjustments.month_amounts import LineKey
from broker.models import Offering
from tenants.models import Project

NO_PROJECT = "All projects"


@dataclass(frozen=True, slots=True)
class NamedLine:
    """An invoice line with names and terms, like `2 leases · on-demand, until 12 Oct`."""

    line: InvoiceLine
    project: str
    title: str
    terms: str
    nano_per_hour: int | None  # None for lines without hours
    reductions: tuple[str, ...] = ()  # `−€1.20: Partner`

    @property
    def all_terms(self) -> str:
        """The terms together with the reductions."""
        return ", ".join(filter(None, (self.terms, *self.reductions)))


def name_lines(invoice: Invoice) -> list[NamedLine]:
    """Return an invoice's lines by number, with names and terms.

    Takes four queries however many lines there are, and two more if the month has adjustments. Days are
    in the month's time zone.
    """
    lines = list(InvoiceLine.objects.filter(invoice=invoice).order_by("n"))
    for line in lines:
        line.invoice = invoice
    sold = {o.pk: o for o in Offering.objects.filter(pk__in={line.offering_id for line in lines})}
    names = dict(Project.objects.filter(pk__in={line.project_id for line in lines}).values_list("pk", "name"))
    prices = {v.pk: v for v in PriceVersion.objects.filter(pk__in={line.price_version_id for line in lines})}
    carried = _adjustments_by_line(invoice) if any(line.month_num for line in lines) else {}
    return [
        NamedLine(
            line=line,
            project=names.get(line.project_id, line.project_id) or NO_PROJECT,
            title=sold[line.offering_id].label,
            terms=_describe_terms(line, sold[line.offering_id], prices[line.price_version_id]),
            reductions=_describe_reductions(carried.get(line_key(line), []), invoice.currency),
            nano_per_hour=prices[line.price_version_id].nano_per_hour,
        )
        if line.is_usage
        else _name_added_line(line, names, carried.get(line_key(line), []))
        for line in lines
    ]


def line_key(line: InvoiceLine) -> LineKey:
    """Return the key of a line: project, offering, price version."""
    return line.project_id, line.offering_id, line.price_version_id


def _adjustments_by_line(invoice: Invoice) -> dict[LineKey, list[InvoiceAdjustment]]:
    found = dict[LineKey, list[InvoiceAdjustment]]()
    for charge in month_adjustments.adjustments_of(invoice):
        found.setdefault(charge.line, []).append(charge)
    return found


def _describe_reductions(carried: list[InvoiceAdjustment], currency: str) -> tuple[str, ...]:
    """Describe the reductions of a line: `−€1.20: Partner`.

    Rounding may make one of them differ by one minor unit.
    """
    reductions = dict[str, int]()
    for charge in carried:
        reductions[charge.label] = reductions.get(charge.label, 0) - int(charge.exact_num)
    places = exponent_of(currency)
    return tuple(f"−{format_minor(to_minor(num, places), currency)}: {label}" for label, num in reductions.items())


def _name_added_line(line: InvoiceLine, names: dict[str, str], carried: list[InvoiceAdjustment]) -> NamedLine:
    """Describe a line that the month adds, such as a minimum."""
    return NamedLine(
        line=line,
        project=names.get(line.project_id, line.project_id) or NO_PROJECT,
        title=carried[0].label if carried else line.get_kind_display(),
        terms="" if line.invoice.number else "estimate until the month is closed",
        nano_per_hour=None,
    )


def _describe_terms(line: InvoiceLine, offering: Offering, price: PriceVersion) -> str:
    """Describe a line: number of leases, price class, and days if the price changed."""
    span, zone = line.invoice.period.span, ZoneInfo(line.invoice.period.time_zone)
    since = f", from {_format_day(price.valid.lower, zone)}" if price.valid.lower > span.lower else ""
    ends = price.valid.upper is not None and price.valid.upper < span.upper
    until = f", until {_format_day(price.valid.upper, zone)}" if ends else ""
    kind = "volume" if offering.is_storage else "lease"
    many = f"{line.leases} {kind}{'s' if line.leases != 1 else ''}"
    given = f", {line.given_back_s:,} s refunded" if line.given_back_s else ""
    how = "per GiB" if offering.is_storage else offering.price_class.replace("_", "-")
    return f"{many} · {how}{given}{since}{until}"


def _format_day(at: datetime, zone: ZoneInfo) -> str:
    here = at.astimezone(zone)
    return f"{here.day} {here:%b}"
