"""The lines of an invoice with the names of what they charge for, as pages, papers and files show them."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.money import exponent_of, shown, to_minor
from billing.models import Invoice, InvoiceLine, MonthCharge, PriceVersion
from billing.services.month_charges import reckoning
from billing.services.month_charges.month import Key
from broker.models import Offering
from tenants.models import Project

NO_PROJECT = "All projects"


@dataclass(frozen=True, slots=True)
class Told:
    """A line, whose it is, what it is of, and what else is known of it: `2 leases · on-demand, until 12 Oct`."""

    line: InvoiceLine
    project: str
    what: str
    terms: str
    nano_per_hour: int | None  # of no hours: none
    less: tuple[str, ...] = ()  # what the month takes off it: `€1.20 less by Partner`

    @property
    def all_terms(self) -> str:
        """Its terms with what is taken off it."""
        return ", ".join(filter(None, (self.terms, *self.less)))


def told(invoice: Invoice) -> list[Told]:
    """Return the lines by number; four queries, however many there are, and two where the month carries anything.

    Days are of the month's time zone.
    """
    lines = list(InvoiceLine.objects.filter(invoice=invoice).order_by("n"))
    for line in lines:
        line.invoice = invoice
    sold = {o.pk: o for o in Offering.objects.filter(pk__in={line.offering_id for line in lines})}
    names = dict(Project.objects.filter(pk__in={line.project_id for line in lines}).values_list("pk", "name"))
    prices = {v.pk: v for v in PriceVersion.objects.filter(pk__in={line.price_version_id for line in lines})}
    carried = _carried(invoice) if any(line.month_num for line in lines) else {}
    return [
        Told(
            line=line,
            project=names.get(line.project_id, line.project_id) or NO_PROJECT,
            what=sold[line.offering_id].label,
            terms=_terms(line, sold[line.offering_id], prices[line.price_version_id]),
            less=_less(carried.get(key_of(line), []), invoice.currency),
            nano_per_hour=prices[line.price_version_id].nano_per_hour,
        )
        if line.is_usage
        else _added(line, names, carried.get(key_of(line), []))
        for line in lines
    ]


def key_of(line: InvoiceLine) -> Key:
    """Return what makes a line."""
    return line.project_id, line.offering_id, line.price_version_id


def _carried(invoice: Invoice) -> dict[Key, list[MonthCharge]]:
    found = dict[Key, list[MonthCharge]]()
    for charge in reckoning.of(invoice):
        found.setdefault(charge.line, []).append(charge)
    return found


def _less(carried: list[MonthCharge], currency: str) -> tuple[str, ...]:
    """Say what the month takes off a line: `€1.20 less by Partner`. Halves of coins may make it one more or less."""
    less = dict[str, int]()
    for charge in carried:
        less[charge.label] = less.get(charge.label, 0) - int(charge.exact_num)
    places = exponent_of(currency)
    return tuple(f"{shown(to_minor(num, places), currency)} less by {label}" for label, num in less.items())


def _added(line: InvoiceLine, names: dict[str, str], carried: list[MonthCharge]) -> Told:
    """Tell a line that the month adds."""
    return Told(
        line=line,
        project=names.get(line.project_id, line.project_id) or NO_PROJECT,
        what=carried[0].label if carried else line.get_kind_display(),
        terms="" if line.invoice.number else "an estimate until the month is closed",
        nano_per_hour=None,
    )


def _terms(line: InvoiceLine, offering: Offering, price: PriceVersion) -> str:
    """Say of how many leases it is, on which terms, and between which days where the price changed in the month."""
    span, zone = line.invoice.period.span, ZoneInfo(line.invoice.period.time_zone)
    since = f", from {_day(price.valid.lower, zone)}" if price.valid.lower > span.lower else ""
    ends = price.valid.upper is not None and price.valid.upper < span.upper
    until = f", until {_day(price.valid.upper, zone)}" if ends else ""
    kind = "volume" if offering.is_storage else "lease"
    many = f"{line.leases} {kind}{'s' if line.leases != 1 else ''}"
    given = f", {line.given_back_s:,} s given back" if line.given_back_s else ""
    how = "by the GiB" if offering.is_storage else offering.price_class.replace("_", "-")
    return f"{many} · {how}{given}{since}{until}"


def _day(at: datetime, zone: ZoneInfo) -> str:
    here = at.astimezone(zone)
    return f"{here.day} {here:%b}"
