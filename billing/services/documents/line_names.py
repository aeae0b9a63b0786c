"""Invoice lines with the names of what they charge for, for pages, documents and files."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from billing.domain.document_formats import ENGLISH, DocumentFormat
from billing.domain.money import exponent_of, to_minor
from billing.models import Invoice, InvoiceAdjustment, InvoiceLine, PriceVersion
from billing.services.adjustments import month_adjustments
from billing.services.adjustments.month_amounts import LineKey
from broker.models import Offering
from tenants.models import Project

NO_PROJECT = "All projects"


@dataclass(frozen=True, slots=True)
class LineQuantity:
    """What a line charges for: hours at a price, or one amount for the month."""

    unit: str  # `h`, `GiB·h` or `month`
    unit_seconds: int | None = None
    nano_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class NamedLine:
    """An invoice line with names and terms, like `2 leases · on-demand, until 12 Oct`."""

    line: InvoiceLine
    project: str
    title: str
    terms: str
    nano_per_hour: int | None  # None for lines without hours
    quantity: LineQuantity
    reductions: tuple[str, ...] = ()  # `−€1.20: Partner`

    @property
    def all_terms(self) -> str:
        """The terms together with the reductions."""
        return ", ".join(filter(None, (self.terms, *self.reductions)))


def name_lines(invoice: Invoice, words: DocumentFormat = ENGLISH) -> list[NamedLine]:
    """Return an invoice's lines by number, with names and terms in a language.

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
            project=names.get(line.project_id, line.project_id) or words.text(NO_PROJECT),
            title=sold[line.offering_id].label,
            terms=_describe_terms(line, sold[line.offering_id], prices[line.price_version_id], words),
            reductions=_describe_reductions(carried.get(line_key(line), []), invoice.currency, words),
            nano_per_hour=prices[line.price_version_id].nano_per_hour,
            quantity=LineQuantity(
                "GiB·h" if sold[line.offering_id].is_storage else "h",
                line.unit_seconds,
                prices[line.price_version_id].nano_per_hour,
            ),
        )
        if line.is_usage
        else _name_added_line(line, names, carried.get(line_key(line), []), words)
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


def _describe_reductions(carried: list[InvoiceAdjustment], currency: str, words: DocumentFormat) -> tuple[str, ...]:
    """Describe the reductions of a line: `−€1.20: Partner`.

    Rounding may make one of them differ by one minor unit.
    """
    reductions = dict[str, int]()
    for charge in carried:
        label = words.text(charge.label)
        reductions[label] = reductions.get(label, 0) - int(charge.exact_num)
    places = exponent_of(currency)
    return tuple(f"−{words.amount(to_minor(num, places), currency)}: {label}" for label, num in reductions.items())


def _name_added_line(
    line: InvoiceLine, names: dict[str, str], carried: list[InvoiceAdjustment], words: DocumentFormat
) -> NamedLine:
    """Describe a line that the month adds, such as a minimum."""
    return NamedLine(
        line=line,
        project=names.get(line.project_id, line.project_id) or words.text(NO_PROJECT),
        title=words.text(carried[0].label if carried else str(line.get_kind_display())),
        terms="" if line.invoice.number else words.text("estimate until the month is closed"),
        nano_per_hour=None,
        quantity=_added_quantity(carried),
    )


def _added_quantity(carried: list[InvoiceAdjustment]) -> LineQuantity:
    """Return the unused hours of a commitment, if the line is for one alone."""
    nano = carried[0].terms.get("nano_per_hour") if len(carried) == 1 and carried[0].units else None
    return LineQuantity("h", carried[0].units, int(nano)) if nano else LineQuantity("month")


def _describe_terms(line: InvoiceLine, offering: Offering, price: PriceVersion, words: DocumentFormat) -> str:
    """Describe a line: number of leases, price class, and days if the price changed."""
    span, zone = line.invoice.period.span, ZoneInfo(line.invoice.period.time_zone)
    starts = price.valid.lower > span.lower
    since = words.text(", from {day}", day=words.day_of_year(price.valid.lower, zone)) if starts else ""
    ends = price.valid.upper is not None and price.valid.upper < span.upper
    until = words.text(", until {day}", day=words.day_of_year(price.valid.upper, zone)) if ends else ""
    kind = "volume" if offering.is_storage else "lease"
    many = words.text(f"{{n}} {kind}{'s' if line.leases != 1 else ''}", n=line.leases)
    given = words.text(", {seconds} s refunded", seconds=words.number(line.given_back_s)) if line.given_back_s else ""
    how = words.text("per GiB" if offering.is_storage else offering.price_class.replace("_", "-"))
    return f"{many} · {how}{given}{since}{until}"
