"""Check an invoice of gpubroker from its bundle: `python verify.py bundle.json`.

This file is self-contained. It needs Python 3.11 or newer and nothing else, opens no connection, and
shares no code with the program that made the invoice: it reads what every lease did and when, splits
that by month and by price, multiplies and rounds, and only then compares the result with the invoice.

These are the rules, and all that it assumes:
* A lease is charged while it is `active`: from the second of one transition until the second of the next.
* Usage costs seconds × quantity × hourly price ÷ 3600, at the price valid in each of its seconds, and
  belongs to the month in the tenant's own time zone. A price is a whole number of 10⁻⁹ currency units.
* A price marked `own` is the tenant's own; while one is valid, the list price of the offering is not.
* A run that the provider preempted (`taken`) after less than the `free_start_s` of a price is free at that
  price from its start, unless a part of it was charged on an earlier invoice.
* A lease that cites a quote never pays more than the quoted price for the quoted offering: where the price
  valid in a second is higher, or there is none, it pays the quoted one. A quote without `ceiling` is older:
  its price is paid whatever is valid later, and such a bundle may be older than these rules: up to version 7,
  quoted usage is in no tier and under no commitment. A quote is for one lease, which is requested before the
  quote expires.
* A volume is charged like a lease of as many units as it has GiB: from its first step until one that leaves
  it none, and for nothing before storage was first sold (`sold_since`).
* A line is everything that one project used of one offering at one price. It is exact until it is rounded
  once to the minor unit, half up. The total is the sum of the lines, and of the tax on them if any.
* A commitment covers, in every second of the invoice's month in which it is valid, as many active units of
  its offering as were committed to, the dearest first, then in the order of the leases' ids; not usage that
  is preempted for free. Covered seconds cost the committed price where that is lower than their own.
  Units that nobody used cost the committed price as well, on a line of their own. Where several commitments
  to an offering are valid, each covers what those listed before it left.
* A tiered price (`graduated`) applies to all that the tenant uses of the offering in the month, in the order
  of start, lease and transition, except covered usage: the first unit-seconds at the base price,
  those from `from_s` on at the tier's price. With `volume`, all usage is at the price of the tier that the
  sum reaches. With `package`, whole packages cost the tier's price each, and the rest costs its hours, but
  at most one more package. Usage at a quoted price saves by the tiers of that price, or if that is more on
  its line, by those of the price valid in its seconds, with nothing above the quoted price.
* Then each percentage discount, in the given order, reduces what is left of each of its lines, rounded down
  to a 3600·10⁹th. Then each fixed discount takes whole minor units from its lines in proportion to theirs, with
  the missing minor units from the largest remainders; if whole minor units are not enough, it takes everything.
* If all rounded lines fall short of the agreed minimum of the month, pro-rated by the second, half up, the
  difference is a line.
* Tax is the sum of a category's lines × its rate, rounded once, half up. Each line has its share of that,
  rounded down; missing minor units go to the lines with the largest remainders, the first of equal ones first.
* Usage that became known after its month was closed is listed as `late` and is on a later invoice. What the
  month's commitments have left after all usage on earlier invoices was paid as unused units, so late seconds
  cost nothing there. Other late seconds continue the tiers of their month, after usage on earlier invoices. Up
  to version 7, they are under no commitment, and in the tiers of the invoice's month.
* Approved corrections are listed as `corrected`: more or less usage, or another price for it. Added usage is
  under commitments and in tiers like other usage of its month, since version 8. Whether they
  are justified is not checked; that they are computed correctly, and make no line negative, is.

The exit code is 0 if the invoice follows from what happened, 1 if it does not, with the differences, and
2 if the file is not a bundle in a known format.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

FORMAT = "gpubroker-invoice"
# Without a word about tax; with it; with whose a price is; and with what the month carries beside its seconds.
UNTAXED, TAXED, TERMS, MONTHLY, CORRECTED, VOLUMES, COMMITTED, CEILINGS = range(1, 9)
EQUAL, DIFFERS, UNREADABLE = 0, 1, 2
SEAL = b'"sha256":'
STATES = frozenset(
    ("requested", "queued", "provisioning", "active", "stopping", "stopped", "releasing", "released", "failed")
)
CHARGED, OVER = "active", "released"
MODELS = frozenset(("flat", "graduated", "volume", "package"))
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
SECOND, HOUR, NANO, WHOLE = timedelta(seconds=1), 3600, 10**9, 10_000


class Unreadable(Exception):
    """The file is not a bundle, or its version is unknown to this program."""


# --- What a bundle holds -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Invoice:
    """The invoice header; `total` is in the minor unit, 10**decimals of which are one unit."""

    id: str
    tenant: str
    number: str | None  # None is a draft
    month: str
    currency: str
    decimals: int
    total: int
    tax: int = 0  # in the total
    treatment: str = ""  # why it is taxed as it is


@dataclass(frozen=True)
class Month:
    """A month and the time zones in which its start and end are midnight."""

    label: str
    start: datetime
    end: datetime
    start_zone: str
    end_zone: str


@dataclass(frozen=True)
class Price:
    """The price of an offering per hour, in 10⁻⁹ currency units.

    `until` None means that it is valid beyond these months.
    """

    id: int
    offering: str
    nano_per_hour: int
    since: datetime
    until: datetime | None
    own: bool = False  # the tenant's, which comes before the list's; since version 3, as is
    free_start_s: int = 0  # how long a start must have run, when it is taken back, to cost anything
    model: str = "flat"  # since version 4, as is
    tiers: tuple["Tier", ...] = ()


@dataclass(frozen=True)
class Tier:
    """A tier: the unit-seconds of the month it starts at, and its price per hour.

    Of a package: its size in unit-seconds, and the price of one package.
    """

    from_s: int
    nano_per_hour: int


@dataclass(frozen=True)
class Discount:
    """A discount on lines of some offerings: hundredths of a per cent, or an amount."""

    id: str
    percent_bp: int | None
    minor: int | None
    offerings: tuple[str, ...]


@dataclass(frozen=True)
class Minimum:
    """The agreed minimum of a whole month, in the minor unit.

    `until` None means that it is valid beyond this month.
    """

    id: str
    minor: int
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class Commitment:
    """Committed units of an offering per second, and their hourly price; since version 7."""

    id: str
    offering: str
    units: int
    nano_per_hour: int
    since: datetime
    until: datetime | None  # None: beyond the month


@dataclass(frozen=True)
class Carried:
    """An adjustment that reduces a line (negative) or adds one; both amounts are exact."""

    kind: str
    source: str
    project: str
    offering: str
    price: int
    base: int
    exact: int


@dataclass(frozen=True)
class Line:
    """A line of the invoice; `exact` is over 3600 · 10⁹, `minor` is that, rounded."""

    n: int
    project: str
    offering: str
    price: int
    leases: int
    unit_seconds: int
    exact: int
    minor: int
    tax_category: str = ""
    tax: int = 0  # beside the amount
    given_back_s: int = 0  # unit-seconds of starts that were taken back, which are not in it; since version 3
    given_back: int = 0  # what those would have come to, as exact is
    kind: str = "usage"  # since version 4, as is
    month: int = 0  # of exact, what the month carries


@dataclass(frozen=True)
class Tax:
    """The tax on all lines of a category; the rate is in basis points.

    The rate is None in a draft while it is unknown.
    """

    category: str
    rate_bp: int | None
    net: int
    tax: int


@dataclass(frozen=True)
class LeaseTransition:
    """One transition of a lease; its terms hold until the next."""

    seq: int
    at: datetime
    state: str
    offering: str
    project: str
    quantity: int
    taken: bool = False  # by the provider, for others; since version 3


@dataclass(frozen=True)
class LeasePart:
    """A part of a lease in one month, identified by the transition that began it."""

    seq: int
    month: str


@dataclass(frozen=True)
class Promise:
    """The quoted price that a lease keeps, whatever other prices become valid."""

    quote: str
    price: int  # of which it is
    offering: str
    nano_per_hour: int  # for one
    quantity: int
    max_duration_s: int
    cap: int  # of all that time, rounded as a line is
    made: datetime
    expires: datetime
    cited: datetime
    ceiling: bool = False  # whether it is the most that is paid, rather than what is; since version 8


@dataclass(frozen=True)
class Lease:
    """The history of a lease, as far as this invoice needs it."""

    id: str
    promised: Promise | None
    late: tuple[LeasePart, ...]  # of earlier months, and on this invoice
    steps: tuple[LeaseTransition, ...]


@dataclass(frozen=True)
class Corrected:
    """An approved correction: charged more (1), less (-1), or at `instead` (0); since version 5."""

    correction: str
    lease: str
    project: str
    offering: str
    price: int
    start: datetime
    end: datetime
    quantity: int
    sign: int
    nano_per_hour: int  # that it is charged or given back at, or was charged at
    instead: int | None  # what it should have cost


@dataclass(frozen=True)
class Size:
    """The size of a volume in GiB from a time on; none: it has ended."""

    seq: int
    at: datetime
    gib: int
    offering: str
    project: str


@dataclass(frozen=True)
class Volume:
    """The history of a volume, as far as this invoice needs it."""

    id: str
    sold_since: datetime | None
    late: tuple[LeasePart, ...]
    steps: tuple[Size, ...]

    @property
    def life(self) -> Lease:
        """The lease that would be charged in the same way."""
        since = self.sold_since
        steps = (
            LeaseTransition(
                size.seq,
                max(size.at, since) if since else size.at,
                CHARGED if size.gib else OVER,
                size.offering,
                size.project,
                max(size.gib, 1),
            )
            for size in self.steps
        )
        return Lease(self.id, None, self.late, tuple(steps))


@dataclass(frozen=True)
class Bundle:
    """All inputs of an invoice."""

    invoice: Invoice
    months: tuple[Month, ...]
    prices: tuple[Price, ...]
    lines: tuple[Line, ...]
    taxes: tuple[Tax, ...]
    discounts: tuple[Discount, ...]
    minimums: tuple[Minimum, ...]
    carried: tuple[Carried, ...]
    corrected: tuple[Corrected, ...]
    leases: tuple[Lease, ...]
    volumes: tuple[Volume, ...]
    commitments: tuple["Commitment", ...]
    corrected_before: tuple[Corrected, ...]  # usage that corrections added to earlier invoices
    sealed: bool  # its bytes are those that were written
    version: int


# --- Reading it: what is not exactly as expected is not guessed at ---------------------------------------------


def read(raw: bytes) -> Bundle:
    """Read the bytes of a bundle, or raise Unreadable."""
    try:
        found = json.loads(raw, object_pairs_hook=_once, parse_float=_no_number, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not valid JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise Unreadable("it is not an invoice bundle")
    version = found.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version not in range(UNTAXED, CEILINGS + 1):
        raise Unreadable(
            f"it has version {version!a}, but this program supports {UNTAXED} to {CEILINGS}; get a newer program"
        )
    invoice, line = (_untaxed_invoice, _untaxed_line) if version == UNTAXED else (_invoice, _line)
    price, lease = (_price, _lease) if version >= TERMS else (_listed_price, _untold_lease)
    lease = _capped_lease if version >= CEILINGS else lease
    line = _told_line if version == TERMS else line
    if version >= MONTHLY:
        price, line = _tiered_price, _month_line
    whole = {"format": _text, "version": _count, "invoice": invoice, "months": _list(_month), "prices": _list(price),
             "lines": _list(line), "leases": _list(lease), "sha256": _text}  # fmt: skip
    taxes = {"taxes": _list(_tax)} if version != UNTAXED else {}
    more = (MONTH if version >= MONTHLY else {}) | (REPAIRED if version >= CORRECTED else {})
    volumes = {"volumes": _list(_volume)} if version >= VOLUMES else {}
    volumes |= {"commitments": _list(_commitment)} if version >= COMMITTED else {}
    volumes |= {"corrected_before": REPAIRED["corrected"]} if version >= CEILINGS else {}
    parts = _shaped(found, whole | taxes | more | volumes, "the bundle")
    sealed, _, digest = raw.rpartition(SEAL)
    mine = hashlib.sha256(sealed).hexdigest()
    names = ("invoice", "months", "prices", "lines", "leases")
    return Bundle(
        **{name: parts[name] for name in names},
        **{name: parts.get(name, ()) for name in ("taxes", *MONTH, *REPAIRED, *LATER)},
        sealed=digest == b'"%s"}\n' % mine.encode(),
        version=version,
    )


Parser = Callable[[Any, str], Any]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("a name occurs twice")
    return found


def _no_number(text: str) -> Any:
    raise Unreadable(f"{text} is not a whole number")


def _shaped(thing: Any, shape: dict[str, Parser], where: str) -> dict[str, Any]:
    if not isinstance(thing, dict):
        raise Unreadable(f"{where} is not an object")
    if unexpected := sorted(set(thing) ^ set(shape)):
        raise Unreadable(f"{where} has missing or unknown names: {unexpected!a}")
    return {name: parse(thing[name], f"{where}: {name}") for name, parse in shape.items()}


def _text(thing: Any, where: str) -> str:
    # What is told of a bundle is told on a terminal, which must not do what somebody wrote into the bundle.
    if not isinstance(thing, str) or not (thing.isascii() and thing.isprintable()):
        raise Unreadable(f"{where} is not plain text")
    return thing


def _count(thing: Any, where: str) -> int:
    if not isinstance(thing, int) or isinstance(thing, bool):
        raise Unreadable(f"{where} is not a whole number")
    return thing


def _whether(thing: Any, where: str) -> bool:
    if not isinstance(thing, bool):
        raise Unreadable(f"{where} is neither true nor false")
    return thing


def _digits(thing: Any, where: str) -> int:
    """Read a number that is written as text because it may be very long."""
    if not isinstance(thing, str) or not re.fullmatch(r"-?[0-9]{1,40}", thing, re.ASCII):
        raise Unreadable(f"{where} is not a number written in digits")
    return int(thing)


def _decimals(thing: Any, where: str) -> int:
    if (found := _count(thing, where)) not in range(5):
        raise Unreadable(f"{where}: {found} is not valid for any currency")
    return found


def _moment(thing: Any, where: str) -> datetime:
    try:
        if isinstance(thing, str) and MOMENT.fullmatch(thing):
            return datetime.fromisoformat(thing)
    except ValueError:
        pass  # a 31st of November
    raise Unreadable(f"{where} is not a time like 2026-11-30T23:00:00Z")


def _state(thing: Any, where: str) -> str:
    if (found := _text(thing, where)) not in STATES:
        raise Unreadable(f"{where}: {found} is an unknown state")
    return found


def _or_none(parse: Parser) -> Parser:
    return lambda thing, where: None if thing is None else parse(thing, where)


def _list(parse: Parser) -> Parser:
    def parsed(thing: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(thing, list):
            raise Unreadable(f"{where} is not a list")
        return tuple(parse(each, f"{where}, {n}") for n, each in enumerate(thing, 1))

    return parsed


def _made(of: Callable[..., Any], /, **shape: Parser) -> Parser:
    return lambda thing, where: of(**_shaped(thing, shape, where))


INVOICE = {"id": _text, "tenant": _text, "number": _or_none(_text), "month": _text, "currency": _text,
           "decimals": _decimals, "total": _count}  # fmt: skip
LINE = {"n": _count, "project": _text, "offering": _text, "price": _count, "leases": _count, "unit_seconds": _count,
        "exact": _digits, "minor": _count}  # fmt: skip
TAX_OF_LINE = {"tax_category": _text, "tax": _count}
_untaxed_invoice, _untaxed_line = _made(Invoice, **INVOICE), _made(Line, **LINE)
_invoice = _made(Invoice, **INVOICE, tax=_count, treatment=_text)
_line = _made(Line, **LINE, **TAX_OF_LINE)
_told_line = _made(Line, **LINE, **TAX_OF_LINE, given_back_s=_count, given_back=_digits)
_month_line = _made(Line, **LINE, **TAX_OF_LINE, given_back_s=_count, given_back=_digits, kind=_text, month=_digits)
_tax = _made(Tax, category=_text, rate_bp=_or_none(_count), net=_count, tax=_count)
_month = _made(Month, label=_text, start=_moment, end=_moment, start_zone=_text, end_zone=_text)
_listed_price = _made(Price, id=_count, offering=_text, nano_per_hour=_digits, since=_moment, until=_or_none(_moment))
_price = _made(Price, id=_count, offering=_text, nano_per_hour=_digits, since=_moment, until=_or_none(_moment),
               own=_whether, free_start_s=_count)  # fmt: skip
_tier = _made(Tier, from_s=_count, nano_per_hour=_digits)
_tiered_price = _made(Price, id=_count, offering=_text, nano_per_hour=_digits, since=_moment, until=_or_none(_moment),
                      own=_whether, free_start_s=_count, model=_text, tiers=_list(_tier))  # fmt: skip
LATER = ("volumes", "commitments", "corrected_before")
REPAIRED: dict[str, Parser] = {
    "corrected": _list(
        _made(
            Corrected,
            correction=_text,
            lease=_text,
            project=_text,
            offering=_text,
            price=_count,
            start=_moment,
            end=_moment,
            quantity=_count,
            sign=_count,
            nano_per_hour=_digits,
            instead=_or_none(_digits),
        )
    )
}
MONTH: dict[str, Parser] = {
    "discounts": _list(
        _made(Discount, id=_text, percent_bp=_or_none(_count), minor=_or_none(_count), offerings=_list(_text))
    ),
    "minimums": _list(_made(Minimum, id=_text, minor=_count, since=_moment, until=_or_none(_moment))),
    "carried": _list(
        _made(
            Carried, kind=_text, source=_text, project=_text, offering=_text, price=_count, base=_digits, exact=_digits
        )
    ),
}
_step = _made(LeaseTransition, seq=_count, at=_moment, state=_state, offering=_text, project=_text, quantity=_count)
_told_step = _made(LeaseTransition, seq=_count, at=_moment, state=_state, offering=_text, project=_text,
                   quantity=_count, taken=_whether)  # fmt: skip
_part = _made(LeasePart, seq=_count, month=_text)
_size = _made(Size, seq=_count, at=_moment, gib=_count, offering=_text, project=_text)
_volume = _made(Volume, id=_text, sold_since=_or_none(_moment), late=_list(_part), steps=_list(_size))
_commitment = _made(Commitment, id=_text, offering=_text, units=_count, nano_per_hour=_digits, since=_moment,
                    until=_or_none(_moment))  # fmt: skip
PROMISE = {"quote": _text, "price": _count, "offering": _text, "nano_per_hour": _digits, "quantity": _count,
           "max_duration_s": _count, "cap": _count, "made": _moment, "expires": _moment,
           "cited": _moment}  # fmt: skip
LEASE = {"id": _text, "promised": _or_none(_made(Promise, **PROMISE)), "late": _list(_part)}
_untold_lease, _lease = (_made(Lease, **LEASE, steps=_list(_step)), _made(Lease, **LEASE, steps=_list(_told_step)))
LEASE |= {"promised": _or_none(_made(Promise, **PROMISE, ceiling=_whether))}
_capped_lease = _made(Lease, **LEASE, steps=_list(_told_step))


# --- Working it out anew ---------------------------------------------------------------------------------------

Key = tuple[str, str, int]  # project, offering, price: what makes a line


@dataclass
class Use:
    """Usage of a lease at one price, as tiers and commitments count it."""

    start: datetime
    lease: str
    seq: int
    seconds: int  # each counted once for every unit
    key: Key
    price: Price
    units: int
    month: str
    here: bool  # on this invoice, rather than on an earlier one
    nano: int  # per hour, for one unit
    valid: Price | None  # in its seconds, if it has the price of a quote instead
    covered: int = 0  # of its seconds

    @property
    def end(self) -> datetime:
        return self.start + self.seconds // self.units * SECOND


@dataclass
class Sum:
    """The computed content of a line."""

    unit_seconds: int = 0
    given_back_s: int = 0
    given_back: int = 0  # over 3600 · 10⁹
    amount: Fraction = Fraction(0)  # in currency units
    month: int = 0  # of it, what the month carries, over 3600 · 10⁹
    leases: set[str] = field(default_factory=set)

    @property
    def exact(self) -> int:
        return int(self.amount * HOUR * NANO)


@dataclass(frozen=True)
class Earlier:
    """An interval that an earlier invoice charged."""

    lease: "Lease"
    begun: "LeaseTransition"
    start: datetime
    end: datetime
    ran: timedelta | None
    month: str


@dataclass
class Report:
    """The recomputed invoice and all differences from the given one."""

    bundle: Bundle
    offered: dict[str, list[Price]] = field(default_factory=dict)
    sums: dict[Key, Sum] = field(default_factory=dict)
    used: dict[str, list[Use]] = field(default_factory=dict)  # by offering, what counts for its tiers
    earlier: list["Earlier"] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    transitions: int = 0
    stretches: int = 0
    total: int = 0
    differences: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def unit_seconds(self) -> int:
        return sum(each.unit_seconds for each in self.sums.values())

    def differs(self, where: str, stated: object, found: object) -> None:
        if stated != found:
            self.differences.append(f"{where}: the invoice says {_grouped(stated)}, recomputed is {_grouped(found)}")


def check(raw: bytes) -> Report:
    """Recompute the invoice of a bundle and compare; raise Unreadable for anything else."""
    report = Report(read(raw))
    if not report.bundle.sealed:
        report.differences.append("the file: its SHA-256 does not match; the file was changed")
    _check_boundaries(report)
    _prices(report)
    seen, quotes = set[str](), set[str]()
    for lease in report.bundle.leases:
        if lease.id in seen:
            report.differences.append(f"{lease.id}: it occurs twice")
        seen.add(lease.id)
        if lease.promised:
            if lease.promised.quote in quotes:
                report.differences.append(f"{lease.id}: another lease cites quote {lease.promised.quote} too")
            quotes.add(lease.promised.quote)
            _kept(report, lease, lease.promised)
        _live(report, lease)
    for part in report.bundle.corrected:
        _correct(report, part)
    for volume in report.bundle.volumes:
        if volume.id in seen:
            report.differences.append(f"{volume.id}: it occurs twice")
        seen.add(volume.id)
        if any(size.gib < 0 for size in volume.steps):
            report.differences.append(f"{volume.id}: its size is negative")
        _live(report, volume.life)
    _count_earlier(report)
    _carry(report)
    _compare(report)
    return report


def _check_boundaries(report: Report) -> None:
    """Check the months' boundaries against this computer's time zone data."""
    labels = [month.label for month in report.bundle.months]
    if len(set(labels)) != len(labels) or report.bundle.invoice.month not in labels:
        report.differences.append(f"the months: {', '.join(labels)} are not unique or lack the invoice's month")
    for month in report.bundle.months:
        for name, stated, zone, ahead in (
            ("begins", month.start, month.start_zone, 0),
            ("ends", month.end, month.end_zone, 1),
        ):
            try:
                mine = midnight_of_first(month.label, ahead, ZoneInfo(zone))
            except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
                report.unchecked.append(f"this computer does not know the time zone {zone} for {month.label}")
                continue
            if stated != mine:
                report.differences.append(
                    f"the month {month.label}: the bundle says it {name} at {_utc(stated)}; midnight of the first in"
                    f" {zone} is {_utc(mine)} by the time zones of this computer"
                )


def midnight_of_first(label: str, ahead: int, zone: ZoneInfo) -> datetime:
    """Return when the first of a month begins in a time zone.

    `ahead` moves on by that many months. If clocks skip that midnight, it is the moment when they do; if
    it comes twice, the second.
    """
    if not (found := re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", label, re.ASCII)):
        raise ValueError(label)
    year, month = divmod(int(found[1]) * 12 + int(found[2]) - 1 + ahead, 12)
    local_time = datetime(year, month + 1, 1)  # noqa: DTZ001  # what clocks on walls there show
    day = timedelta(days=1)
    offsets = {(local_time + shift).replace(tzinfo=zone).utcoffset() or timedelta(0) for shift in (-day, day)}
    tries = [(local_time - offset).replace(tzinfo=UTC) for offset in offsets]
    fits = [at for at in tries if at.astimezone(zone).replace(tzinfo=None) == local_time]
    return max(fits or tries)


def _prices(report: Report) -> None:
    ids = [price.id for price in report.bundle.prices]
    if len(set(ids)) != len(ids):
        report.differences.append("the prices: one occurs twice")
    for price in report.bundle.prices:
        report.offered.setdefault(price.offering, []).append(price)
        starts, prices = (tuple(getattr(tier, name) for tier in price.tiers) for name in ("from_s", "nano_per_hour"))
        least = 0 if price.model == "package" else price.nano_per_hour
        if (
            price.model not in MODELS
            or (price.model == "flat") != (not starts)
            or (price.model == "package" and len(starts) != 1)
            or any(b <= a for a, b in pairwise((0, *starts)))
            or any(nano < 0 or (least and nano > least) for nano in prices)
        ):
            report.differences.append(
                f"price {price.id}: its tiers are not in ascending order, or cost more than the price"
            )
        if price.nano_per_hour < 0 or (price.until is not None and price.until <= price.since):
            report.differences.append(f"price {price.id}: it is negative or ends before it starts")


def _kept(report: Report, lease: Lease, promise: Promise) -> None:
    """Check the quote of a lease against its request and the quoted price."""
    name, first_step = f"{lease.id}, quote {promise.quote}", lease.steps[0] if lease.steps else None
    if first_step and (promise.offering, promise.quantity, promise.cited) != (
        first_step.offering,
        first_step.quantity,
        first_step.at,
    ):
        report.differences.append(
            f"{name}: it is for {promise.quantity} of {promise.offering}, cited {_utc(promise.cited)}; requested were"
            f" {first_step.quantity} of {first_step.offering}, {_utc(first_step.at)}"
        )
    if not promise.made <= promise.cited <= promise.expires:
        report.differences.append(f"{name}: it was cited before it was created or after it expired")
    if promise.nano_per_hour < 0 or promise.max_duration_s < 1:
        report.differences.append(f"{name}: its price is negative or its duration is zero")
    whole = Fraction(promise.nano_per_hour, NANO) * promise.max_duration_s * promise.quantity / HOUR
    invoice = report.bundle.invoice
    cap = rounded(whole * 10**invoice.decimals)
    report.differs(f"{name}, cap", _money(promise.cap, invoice), _money(cap, invoice))
    of = [price for price in report.bundle.prices if price.id == promise.price]
    if not of:
        report.differences.append(f"{name}: its price {promise.price} is not in the bundle")
    for price in of:
        if (price.offering, price.nano_per_hour) != (promise.offering, promise.nano_per_hour):
            report.differences.append(f"{name}: price {price.id} differs from the quoted price")
        # It may have ended a little before, where somebody was just changing it; it never begins later.
        if promise.made < price.since:
            report.differences.append(f"{name}: price {price.id} started after the quote was created")


def _live(report: Report, lease: Lease) -> None:
    """Add up what this invoice charges of a lease's history."""
    report.transitions += len(lease.steps)
    if [step.seq for step in lease.steps] != list(range(len(lease.steps))):
        report.differences.append(f"{lease.id}: its transitions are incomplete or not numbered from 0")
    found, charged, ran = set[LeasePart](), False, _taken(lease)
    for begun, ended in pairwise(lease.steps):
        if ended.at < begun.at:
            report.differences.append(f"{lease.id}: transition {ended.seq} is earlier than the one before it")
        if begun.quantity < 1:
            report.differences.append(f"{lease.id}: transition {begun.seq} has {begun.quantity} units")
        if begun.state != CHARGED:
            continue
        for month in report.bundle.months:
            start, end = max(begun.at, month.start), min(ended.at, month.end)
            if start >= end:
                continue
            part = LeasePart(begun.seq, month.label)
            found.add(part)
            if month.label == report.bundle.invoice.month or part in lease.late:
                charged = True
                _charge(report, lease, begun, start, end, ran.get(begun.seq), month.label)
            else:
                report.earlier.append(Earlier(lease, begun, start, end, ran.get(begun.seq), month.label))
    for part in lease.late:
        if part not in found:
            report.differences.append(f"{lease.id}: transition {part.seq} starts no charged interval in {part.month}")
    told = {part.lease for part in report.bundle.corrected} | {each.lease.id for each in report.earlier}
    if not charged and (lease.id not in told or report.bundle.version < CORRECTED):
        report.differences.append(f"{lease.id}: it is in the bundle but not on this invoice")


def _correct(report: Report, part: Corrected) -> None:
    """Apply a correction: additional or fewer seconds at a price, or another price."""
    seconds = (part.end - part.start) // SECOND * part.quantity
    name = f"{part.lease}, {part.correction}"
    if seconds < 1 or part.nano_per_hour < 0 or (part.sign not in (-1, 1)) != (part.instead is not None):
        report.differences.append(f"{name}: it has no effect")
        return
    if part.lease not in {lease.id for lease in report.bundle.leases}:
        report.differences.append(f"{name}: its lease is not in the bundle")
    line = report.sums.setdefault((part.project, part.offering, part.price), Sum())
    line.leases.add(part.lease)
    line.unit_seconds += part.sign * seconds
    nano = part.sign * part.nano_per_hour if part.instead is None else part.instead - part.nano_per_hour
    line.amount += Fraction(nano, NANO) * seconds / HOUR
    if part.sign == 1 and report.bundle.version >= CEILINGS:
        _count_added(report, part, here=True)


def _count_added(report: Report, part: Corrected, *, here: bool) -> None:
    """Count usage that a correction added for commitments and tiers."""
    month = next((m.label for m in report.bundle.months if m.start <= part.start < m.end), None)
    price = next((price for price in report.bundle.prices if price.id == part.price), None)
    if month is None or price is None:
        report.differences.append(f"{part.lease}, {part.correction}: its month or its price is not in the bundle")
        return
    promise = next((lease.promised for lease in report.bundle.leases if lease.id == part.lease), None)
    promise = promise if promise and promise.offering == part.offering else None
    offered = report.offered.get(part.offering, [])
    paid = next(_capped(offered, promise, part.start, part.end), None)
    valid = paid[3] if paid and paid[0].id == part.price else None
    seconds = (part.end - part.start) // SECOND * part.quantity
    key = part.project, part.offering, part.price
    use = Use(part.start, part.lease, 0, seconds, key, price, part.quantity, month, here, part.nano_per_hour, valid)
    report.used.setdefault(part.offering, []).append(use)


def _count_earlier(report: Report) -> None:
    """Count earlier invoices' usage of a month whose late usage is here."""
    if report.bundle.version < CEILINGS:
        return
    own = report.bundle.invoice.month
    tiered = {price.offering for price in report.bundle.prices if price.model != "flat"}
    committed = {
        (agreed.offering, month.label)
        for agreed in report.bundle.commitments
        for month in report.bundle.months
        if _valid_in(agreed, month)
    }
    late = {(use.key[1], use.month) for uses in report.used.values() for use in uses if use.month != own}
    late = {each for each in late if each[0] in tiered or each in committed}
    for each in report.earlier:
        if (each.begun.offering, each.month) in late:
            _charge(report, each.lease, each.begun, each.start, each.end, each.ran, each.month, here=False)
    for part in report.bundle.corrected_before:
        _count_added(report, part, here=False)


def _taken(lease: Lease) -> dict[int, timedelta]:
    """Return how long each preempted run had lasted in all, by its transitions."""
    found, run = dict[int, timedelta](), list[LeaseTransition]()
    for step in lease.steps:
        if step.state == CHARGED:
            run.append(step)
            continue
        if run and step.taken:
            found |= {each.seq: step.at - run[0].at for each in run}
        run = []
    return found


def _charge(
    report: Report,
    lease: Lease,
    begun: LeaseTransition,
    start: datetime,
    end: datetime,
    ran: timedelta | None,
    month: str,
    *,
    here: bool = True,
) -> None:
    """Charge an interval of one month, or only count it if not `here`.

    A preempted run that was short enough is free.
    """
    report.stretches += here
    priced = 0
    promise = lease.promised if lease.promised and lease.promised.offering == begun.offering else None
    for price, since, until, valid in _capped(report.offered.get(begun.offering, []), promise, start, end):
        seconds = (until - since) // SECOND
        priced += seconds
        free = ran is not None and ran < price.free_start_s * SECOND
        key, used = (begun.project, begun.offering, price.id), seconds * begun.quantity
        if not free and (promise is None or report.bundle.version >= CEILINGS):
            use = Use(since, lease.id, begun.seq, used, key, price, begun.quantity, month, here, price.nano_per_hour,
                      valid)  # fmt: skip
            report.used.setdefault(begun.offering, []).append(use)
        if not here:
            continue
        line = report.sums.setdefault(key, Sum())
        line.leases.add(lease.id)
        if free:
            line.given_back_s += used
            line.given_back += price.nano_per_hour * used
            continue
        line.unit_seconds += used
        line.amount += Fraction(price.nano_per_hour, NANO) * used / HOUR
    if priced != (seconds := (end - start) // SECOND):
        report.differences.append(
            f"{lease.id}: of the {_grouped(seconds)} s from {_utc(start)} to {_utc(end)}, {_grouped(priced)} s have a"
            " price, each once"
        )


def _capped(
    offered: list[Price], promised: Promise | None, start: datetime, end: datetime
) -> Iterator[tuple[Price, datetime, datetime, Price | None]]:
    """Split an interval by the price paid, with the price that a quote replaces."""
    if promised is None:
        yield from ((price, since, until, None) for price, since, until in _priced(offered, start, end))
        return
    kept = Price(promised.price, promised.offering, promised.nano_per_hour, start, end)
    for price in offered:
        if price.id == kept.id:
            kept = replace(price, nano_per_hour=promised.nano_per_hour)
    if not promised.ceiling:
        yield kept, start, end, None
        return
    at = start
    for price, since, until in sorted(_priced(offered, start, end), key=lambda found: found[1]):
        if at < since:
            yield kept, at, since, None
        if price.nano_per_hour > promised.nano_per_hour:
            yield kept, since, until, price
        else:
            yield price, since, until, None
        at = until
    if at < end:
        yield kept, at, end, None


def _priced(offered: list[Price], start: datetime, end: datetime) -> Iterator[tuple[Price, datetime, datetime]]:
    """Split an interval by the prices of its offering."""
    own = [(price, found) for price in offered if price.own and (found := _shared(price, start, end))]
    for price, (since, until) in own:
        yield price, since, until
    for price in offered:
        if not price.own and (found := _shared(price, start, end)):
            at, until = found
            for mine in sorted(filter(None, (_shared(mine, at, until) for mine, _ in own))):
                if at < mine[0]:
                    yield price, at, mine[0]
                at = max(at, mine[1])
            if at < until:
                yield price, at, until


def _shared(price: Price, start: datetime, end: datetime) -> tuple[datetime, datetime] | None:
    """Return the part of an interval in which a price is valid, or None."""
    since, until = max(start, price.since), end if price.until is None else min(end, price.until)
    return (since, until) if since < until else None


# --- What the month carries ----------------------------------------------------------------------------------


def _carry(report: Report) -> None:
    """Apply the month's adjustments in their fixed order."""
    invoice = report.bundle.invoice
    _commitments(report)
    _tiers(report, invoice.month)
    for month in report.bundle.months:
        if month.label != invoice.month and report.bundle.version >= CEILINGS:
            _late_commitments(report, month)
            _tiers(report, month.label)
    for percent in (True, False):
        for discount in report.bundle.discounts:
            if (discount.percent_bp is not None) == percent:
                _discount(report, discount)
    lines = sum(rounded(each.amount * 10**invoice.decimals) for each in report.sums.values())
    if report.bundle.minimums and (lacks := max(0, _least(report) - lines)):
        report.sums[NO_LINE] = Sum()
        first = report.bundle.minimums[0].id
        _carried(report, NO_LINE, "minimum", first, lacks * _minor_unit(invoice), base=lines * _minor_unit(invoice))
    stated, mine = report.bundle.carried, tuple(report.carried)
    for n, (theirs, found) in enumerate(zip(stated, mine, strict=False), 1):
        report.differs(f"monthly adjustment {n}", _of_month(theirs), _of_month(found))
    report.differs("monthly adjustments, total", len(stated), len(mine))


NO_LINE: Key = ("", "minimum", 0)
SHORT: Key = ("", "shortfall", 0)


def _minor_unit(invoice: Invoice) -> int:
    return int(HOUR * NANO // 10**invoice.decimals)


def _carried(report: Report, key: Key, kind: str, source: str, exact: int, *, base: int) -> None:
    report.carried.append(Carried(kind, source, *key, base=base, exact=exact))
    report.sums[key].amount += Fraction(exact, HOUR * NANO)
    report.sums[key].month += exact


def _commitments(report: Report) -> None:
    """Reduce lines for covered seconds and add lines for unused committed units."""
    unused = list[tuple[Commitment, int, int]]()
    month = next((m for m in report.bundle.months if m.label == report.bundle.invoice.month), None)
    held = report.bundle.commitments
    order = [(each.offering, each.since, each.id) for each in held]
    overlaps = (a.offering == b.offering and (a.until is None or a.until > b.since) for a, b in pairwise(held))
    if order != sorted(set(order)) or (report.bundle.version < CEILINGS and any(overlaps)):
        report.differences.append("the commitments: two of one offering overlap, or they are not sorted")
    spans = dict[Commitment, tuple[datetime, datetime]]()
    for agreed in held:
        if month is None or agreed.units < 1 or agreed.nano_per_hour < 1:
            report.differences.append(f"commitment {agreed.id}: it is empty")
            continue
        since, until = max(agreed.since, month.start), min(agreed.until or month.end, month.end)
        if since < until:
            spans[agreed] = since, until
        elif report.bundle.version < CEILINGS or not any(_valid_in(agreed, each) for each in report.bundle.months):
            report.differences.append(f"commitment {agreed.id}: it is not valid in the month")
    shares = _sweep(report, spans, report.bundle.invoice.month)
    for agreed, (since, until) in spans.items():
        whole, found = (until - since) // SECOND * agreed.units, shares[agreed]
        less = dict[Key, int]()
        for use, seconds in found:
            cheaper = max(use.nano - agreed.nano_per_hour, 0) * seconds
            less[use.key] = less.get(use.key, 0) + cheaper
            use.covered += seconds
        for key, num in sorted(less.items()):
            if (off := min(num, report.sums[key].exact)) > 0:
                _carried(report, key, "commit", agreed.id, -off, base=report.sums[key].exact)
        unused.append((agreed, whole, whole - sum(seconds for _, seconds in found)))
    for agreed, whole, left in unused:
        if left:
            report.sums.setdefault(SHORT, Sum())
            nano = agreed.nano_per_hour
            _carried(report, SHORT, "shortfall", agreed.id, left * nano, base=whole * nano)


Spans = dict[Commitment, tuple[datetime, datetime]]


def _valid_in(agreed: Commitment, month: Month) -> tuple[datetime, datetime] | None:
    """Return the part of a month in which a commitment is valid, or None."""
    since, until = max(agreed.since, month.start), min(agreed.until or month.end, month.end)
    return (since, until) if since < until else None


def _late_commitments(report: Report, month: Month) -> None:
    """Take late usage off its lines where its month's commitments were unused."""
    spans = {agreed: span for agreed in report.bundle.commitments if (span := _valid_in(agreed, month))}
    shares = _sweep(report, spans, month.label)
    for agreed in spans:
        less = dict[Key, int]()
        for use, seconds in shares[agreed]:
            use.covered += seconds
            if use.here:
                less[use.key] = less.get(use.key, 0) + use.nano * seconds
        for key, num in sorted(less.items()):
            if (off := min(num, report.sums[key].exact)) > 0:
                base = report.sums[key].exact
                _carried(report, key, "commit", f"{agreed.id}/{month.label}", -off, base=base)


def _sweep(report: Report, spans: Spans, month: str) -> dict[Commitment, list[tuple[Use, int]]]:
    """Share the committed units among the active leases, at every moment of the month.

    Goes from one start or end of usage or of a commitment to the next. Usage on earlier invoices comes
    first.
    """
    found: dict[Commitment, list[tuple[Use, int]]] = {}
    for offering in {agreed.offering for agreed in spans}:
        together = {agreed: span for agreed, span in spans.items() if agreed.offering == offering}
        here = [use for use in report.used.get(offering, []) if use.month == month]
        turns = dict[datetime, tuple[list[int], list[int]]]()
        for span in together.values():
            for at in span:
                turns.setdefault(at, ([], []))
        for n, use in enumerate(here):
            turns.setdefault(use.start, ([], []))[0].append(n)
            turns.setdefault(use.end, ([], []))[1].append(n)
        active, taken = list[tuple[bool, int, str, int]](), {agreed: [0] * len(here) for agreed in together}
        for (at, (begin, end)), (then, _) in pairwise(sorted(turns.items())):
            gone = set(end)
            active = sorted([one for one in active if one[3] not in gone] + [_rank(here[n], n) for n in begin])
            left = [(agreed, agreed.units) for agreed, (since, until) in together.items() if since <= at < until]
            for *_, n in active:
                units = here[n].units
                while left and units:
                    agreed, free = left[0]
                    share = min(free, units)
                    taken[agreed][n] += (then - at) // SECOND * share
                    units -= share
                    left = [(agreed, free - share), *left[1:]] if free > share else left[1:]
                if not left:
                    break
        for agreed in together:
            found[agreed] = [(use, seconds) for use, seconds in zip(here, taken[agreed], strict=True) if seconds]
    return found


def _rank(use: Use, n: int) -> tuple[bool, int, str, int]:
    return use.here, -use.nano, use.lease, n


def _tiers(report: Report, month: str) -> None:
    """Reduce lines by what tiers and packages save against the price per hour."""
    kept, valid = dict[Key, int](), dict[Key, int]()
    own = report.bundle.invoice.month
    for found in report.used.values():
        uses = [use for use in found if use.month == month or report.bundle.version < CEILINGS]
        whole, position = sum(use.seconds - use.covered for use in uses), 0
        for use in sorted(uses, key=lambda use: (month != own and use.here, use.start, use.lease, use.seq)):
            here, position = position, position + use.seconds - use.covered
            if not use.here:
                continue
            saved = _cheaper(use.price, here, position, whole)
            other = saved if use.valid is None else _cheaper(_below(use.valid, use.price), here, position, whole)
            kept[use.key], valid[use.key] = kept.get(use.key, 0) + saved, valid.get(use.key, 0) + other
    for key, num in sorted((key, max(num, valid[key])) for key, num in kept.items()):
        off = min(num, report.sums[key].exact)
        if off > 0:
            source = str(key[2]) if month == own else f"{key[2]}/{month}"
            _carried(report, key, "tier", source, -off, base=report.sums[key].exact)


def _below(valid: Price, quoted: Price) -> Price:
    """Return a price with nothing in it above a quoted one."""
    most = quoted.nano_per_hour
    if valid.model == "package":
        size, cost = valid.tiers[0].from_s, valid.tiers[0].nano_per_hour
        return replace(valid, nano_per_hour=most) if cost * HOUR <= size * most else replace(valid, model="flat")
    tiers = tuple(Tier(tier.from_s, min(tier.nano_per_hour, most)) for tier in valid.tiers)
    return replace(valid, nano_per_hour=most, tiers=tiers)


def _cheaper(price: Price, since: int, until: int, whole: int) -> int:
    """Return what seconds [since, until) of the month save, over 3600 · 10⁹."""
    if price.model == "flat":
        return 0
    if price.model == "package":
        return _packed(price, until) - _packed(price, since)
    found, at = 0, [(0, price.nano_per_hour), *((tier.from_s, tier.nano_per_hour) for tier in price.tiers)]
    if price.model == "volume":
        return (until - since) * (price.nano_per_hour - [nano for start, nano in at if start <= whole][-1])
    for n, (start, nano) in enumerate(at):
        end = at[n + 1][0] if n + 1 < len(at) else until
        found += max(0, min(end, until) - max(start, since)) * (price.nano_per_hour - nano)
    return found


def _packed(price: Price, used: int) -> int:
    """Return what usage from 0 on saves in packages against the hourly price."""
    size, cost = price.tiers[0].from_s, price.tiers[0].nano_per_hour * HOUR
    dearer = used // size * cost + min(used % size * price.nano_per_hour, cost)
    return used * price.nano_per_hour - dearer


def _of_month(carried: Carried) -> str:
    return (
        f"{carried.kind} by {carried.source} of ({carried.project}, {carried.offering}, {carried.price}):"
        f" {carried.exact} on {carried.base}"
    )


def _discount(report: Report, discount: Discount) -> None:
    """Apply one discount to its lines."""
    lines = {key: report.sums[key].exact for key in sorted(report.sums) if key[1] in discount.offerings}
    if discount.percent_bp is not None:
        if not 0 <= discount.percent_bp <= WHOLE:
            report.differences.append(f"discount {discount.id}: it is negative or more than 100 %")
        parts = {key: num * discount.percent_bp // WHOLE for key, num in lines.items()}
    else:
        parts = off(lines, discount.minor or 0, _minor_unit(report.bundle.invoice))
    kind = "amount" if discount.percent_bp is None else "percent"
    for key, num in parts.items():
        if num > 0:
            _carried(report, key, kind, discount.id, -num, base=lines[key])


def off(lines: dict[Key, int], minor: int, minor_unit: int) -> dict[Key, int]:
    """Return how a fixed discount is split over the lines."""
    whole = [num // minor_unit for num in lines.values()]
    if minor <= sum(whole):
        return {key: each * minor_unit for key, each in zip(lines, _split(whole, minor), strict=True)}
    found, left = dict[Key, int](), (minor - sum(whole)) * minor_unit
    for key, num in lines.items():
        rest = min(num % minor_unit, left)
        found[key], left = num - num % minor_unit + rest, left - rest
    return found


def _split(weights: list[int], total: int) -> list[int]:
    """Split a total by weights with the largest-remainder method.

    Of equal remainders the first gets the next unit.
    """
    full = [Fraction(total * each, sum(weights) or 1) for each in weights]
    parts = [each.__floor__() for each in full]
    for at in sorted(range(len(full)), key=lambda at: (parts[at] - full[at], at))[: total - sum(parts)]:
        parts[at] += 1
    return parts


def _least(report: Report) -> int:
    """Return the agreed minimum of the invoice's month, pro-rated by the second."""
    found = 0
    for month in report.bundle.months:
        if month.label == report.bundle.invoice.month:
            for agreed in report.bundle.minimums:
                since, until = max(agreed.since, month.start), min(agreed.until or month.end, month.end)
                found += rounded(Fraction(agreed.minor * max(0, (until - since) // SECOND),
                                          (month.end - month.start) // SECOND))  # fmt: skip
    return found


# --- Comparing -----------------------------------------------------------------------------------------------


def _compare(report: Report) -> None:
    """Compare the invoice's lines with the computed ones."""
    invoice, left = report.bundle.invoice, dict(report.sums)
    if [line.n for line in report.bundle.lines] != list(range(1, len(report.bundle.lines) + 1)):
        report.differences.append("the lines: they are not numbered from 1 without gaps")
    for line in report.bundle.lines:
        mine = left.pop((line.project, line.offering, line.price), Sum())
        name = f"line {line.n}"
        report.differs(f"{name}, leases", line.leases, len(mine.leases))
        report.differs(f"{name}, seconds", line.unit_seconds, mine.unit_seconds)
        report.differs(f"{name}, refunded seconds", line.given_back_s, mine.given_back_s)
        report.differs(f"{name}, exact refunded amount", line.given_back, mine.given_back)
        report.differs(f"{name}, exact amount in 1/3600/10^9", line.exact, mine.exact)
        report.differs(f"{name}, monthly adjustments included", line.month, mine.month)
        if mine.amount < 0 or mine.unit_seconds < 0:
            report.differences.append(f"{name}: more was refunded than charged")
        minor = rounded(mine.amount * 10**invoice.decimals)
        report.differs(f"{name}, amount", _money(line.minor, invoice), _money(minor, invoice))
        report.total += minor
    for (project, offering, price), mine in sorted(left.items()):
        minor = rounded(mine.amount * 10**invoice.decimals)
        report.total += minor
        report.differences.append(
            f"a line is missing: {project} used {_grouped(mine.unit_seconds)} s of {offering} at price {price}, which"
            f" is {_money(minor, invoice)}"
        )
    _taxes(report)
    report.differs("the total", _money(invoice.total, invoice), _money(report.total, invoice))


def _taxes(report: Report) -> None:
    """Compare the tax with the lines, by category and then by line."""
    invoice, left = report.bundle.invoice, {line.n for line in report.bundle.lines if line.tax_category}
    whole = 0
    for tax in report.bundle.taxes:
        lines = [line for line in report.bundle.lines if line.tax_category == tax.category]
        left -= {line.n for line in lines}
        net, rate = sum(line.minor for line in lines), tax.rate_bp or 0
        mine = rounded(Fraction(net * rate, WHOLE))
        whole += mine
        name = f"tax, {tax.category}"
        report.differs(f"{name}, tax base", _money(tax.net, invoice), _money(net, invoice))
        report.differs(f"{name}, at {Fraction(rate, 100)} %", _money(tax.tax, invoice), _money(mine, invoice))
        for line, share in zip(lines, shared([line.minor for line in lines], rate, mine), strict=True):
            report.differs(f"line {line.n}, tax", _money(line.tax, invoice), _money(share, invoice))
        if not 0 <= rate <= WHOLE or (tax.rate_bp is None and invoice.number):
            report.differences.append(f"{name}: the rate does not match the tax treatment")
    if len({tax.category for tax in report.bundle.taxes}) != len(report.bundle.taxes) or left:
        report.differences.append("the tax: the categories do not match those of the lines")
    report.differs("the tax", _money(invoice.tax, invoice), _money(whole, invoice))
    report.total += whole


def shared(amounts: list[int], rate: int, whole: int) -> list[int]:
    """Return each line's share of a category's tax."""
    full = [Fraction(amount * rate, WHOLE) for amount in amounts]
    parts = [each.__floor__() for each in full]
    most = sorted(range(len(full)), key=lambda at: (parts[at] - full[at], at))
    for at in most[: whole - sum(parts)]:
        parts[at] += 1
    return parts


def rounded(amount: Fraction) -> int:
    """Return the nearest integer; halves are rounded away from zero."""
    down = (abs(amount) + Fraction(1, 2)).__floor__()
    return -down if amount < 0 else down


# --- Telling -------------------------------------------------------------------------------------------------


def report_lines(report: Report) -> Iterator[str]:
    """Return the result as text, line by line."""
    bundle, invoice = report.bundle, report.bundle.invoice
    known = f"invoice {invoice.number}" if invoice.number else f"the draft invoice {invoice.id}"
    yield f"{known} of {invoice.tenant}, {invoice.month}"
    yield f"  leases       {_grouped(len(bundle.leases))}, with {_grouped(report.transitions)} transitions"
    if bundle.volumes:
        yield f"  volumes      {_grouped(len(bundle.volumes))}, per GiB"
    yield f"  stretches    {_grouped(report.stretches)} of activity"
    yield f"  seconds      {_grouped(report.unit_seconds)}, counted per unit"
    yield f"  lines        {_grouped(len(report.sums))} recomputed, {_grouped(len(bundle.lines))} on the invoice"
    if invoice.treatment:
        yield f"  tax          {_money(invoice.tax, invoice)} in the total, {invoice.treatment}"
    yield f"  total        {_money(report.total, invoice)} recomputed, {_money(invoice.total, invoice)} on the invoice"
    for words in report.unchecked:
        yield f"  not checked  {words}"
    for words in report.differences:
        yield f"  DIFFERS      {words}"
    count = len(report.differences)
    yield (f"{count} difference{'s' * (count != 1)}" if count else "equal: every amount matches")


def _grouped(thing: object) -> str:
    return f"{thing:,}" if isinstance(thing, int) else str(thing)


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _money(minor: int, invoice: Invoice) -> str:
    whole, rest = divmod(abs(minor), 10**invoice.decimals)
    digits = f".{rest:0{invoice.decimals}}" if invoice.decimals else ""
    return f"{'-' if minor < 0 else ''}{whole:,}{digits} {invoice.currency}"


def main(arguments: list[str]) -> int:
    """Check the bundle at the given path and print the result."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python verify.py bundle.json", file=sys.stderr)
        return UNREADABLE
    try:
        report = check(Path(arguments[0]).read_bytes())
    except (OSError, Unreadable) as error:
        print(f"{arguments[0]} cannot be verified: {error}", file=sys.stderr)
        return UNREADABLE
    for words in report_lines(report):
        print(words)
    return EQUAL if report.equal else DIFFERS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
