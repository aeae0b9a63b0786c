"""The live quote beside the launch form: price, at most, quota left, where it would lie, and what else there is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from billing.domain.money import Money
from billing.domain.pricing import at_most
from billing.portal import meters, seats, standing
from billing.portal.pages import PageRequest
from billing.portal.seats import Drawing
from billing.portal.shelf import Sold
from billing.services import alternatives
from billing.services.alternatives import Alternative
from billing.services.funds import holds, standings
from billing.services.funds.standings import Room
from billing.services.prices import NoPrice
from billing.services.quotes import offer_for
from billing.services.sealing import Offer
from broker.models import Lease
from broker.services.catalogue import profile_of
from broker.services.leases import openings
from broker.services.leases import request as asking
from broker.services.leases.request import Wanted
from broker.services.leases.standing import starts
from broker.services.volumes import mounting
from tenants.models import QuotaKind
from tenants.services.refusals import Invalid, QuotaExceeded, Refused

FEW = 5  # starts below which a distribution says nothing
BARS = 14
ICONS = {"spot": "coin-euro", "cheaper": "arrow-down-right", "faster": "bolt"}
CENTURY = timedelta(days=36_525)  # no lease may last so long; the form says so, the clock need not break


@dataclass(frozen=True)
class Starts:
    """How long starts took, as bars of a second, and where the slowest tenth begins."""

    counts: tuple[int, ...]
    split: int
    p50: int
    p90: int
    first: int
    many: int


@dataclass(frozen=True)
class Other:
    """Something else that could be launched, with the difference it makes."""

    icon: str
    words: str
    sub: str
    names: str  # the offering and its terms, as the form names them
    nano_per_hour: int
    more: int  # minor units more over the whole time; less where negative
    currency: str


@dataclass(frozen=True)
class Quote:
    """One answer to "may I have this, and for how much"; nothing of it is stored before somebody takes it up."""

    sold: Sold
    wanted: Wanted
    currency: str
    nano_per_hour: int | None  # for all slices together
    most: Money | None
    units: int  # milli-units it takes
    quota: meters.Bar | None
    budget: Room | None
    drawings: tuple[Drawing, ...] = ()
    fits: bool = False
    starts: Starts | None = None
    ends: datetime | None = None
    refused: Refused | None = None
    others: tuple[Other, ...] = field(default=())
    offer: Offer | None = None  # the promise of this price, which the form carries along

    @property
    def starts_words(self) -> str:
        known = self.starts
        return (
            f"{known.many} starts: half within {known.p50} s, nine of ten within {known.p90} s"
            if known
            else ""
        )

    @property
    def left(self) -> str:
        """Units of quota that stay free after it."""
        if self.quota is None:
            return ""
        return self.quota.amount(max(self.quota.limit - self.quota.used - self.units, 0))

    @property
    def budget_left(self) -> Money | None:
        """What stays of this month's budget after it, if all of it falls into this month."""
        if self.budget is None or self.most is None:
            return None
        return Money(max(self.budget.left - self.most.minor, 0), self.currency)

    @property
    def length(self) -> timedelta:
        return timedelta(seconds=self.wanted.max_duration_s)


def quote(request: PageRequest, each: Sold, wanted: Wanted) -> Quote:
    """Reckon the quote from what is there now; nothing is taken and nothing is written."""
    offering = each.offering
    nano = each.nano_per_hour * wanted.quantity if each.nano_per_hour is not None else None
    possible = 1 <= wanted.quantity <= asking.MAX_QUANTITY
    seating = None
    if possible:
        home = mounting.home_of(wanted.volume)
        seating = openings.preview(
            offering,
            now=request.now,
            quantity=wanted.quantity,
            same_node=wanted.same_node or bool(wanted.topology),
            topology=wanted.topology,
            cluster=home,
        )
    lease, refused = judged(request, wanted)
    bars = meters.quotas(request.project, now=request.now, currency=request.tenant.currency)
    room = standings.room(request.project, now=request.now)
    asked = lease and (room or standing.terms_of(request.scope))
    no_funds = holds.refusal(lease, now=request.now) if lease and asked else None
    cost = most(each, wanted, request.tenant.currency)
    return Quote(
        sold=each,
        wanted=wanted,
        currency=request.tenant.currency,
        nano_per_hour=nano,
        most=cost,
        units=offering.milli_units * wanted.quantity,
        quota=next((bar for bar in bars if bar.kind == QuotaKind.UNITS), None),
        budget=room,
        drawings=tuple(seats.previewed(seating, profile=profile_of(offering).name)) if seating else (),
        fits=seating is not None,
        starts=distribution(starts(request.tenant.pk, offering)),
        ends=earliest_end(request, wanted),
        refused=refused or beyond(each, wanted, bars) or no_funds,
        others=others(lease, cost, request.now) if lease and cost else (),
        offer=offer_for(lease, each.price, now=request.now) if lease else None,
    )


def judged(request: PageRequest, wanted: Wanted) -> tuple[Lease | None, Refused | None]:
    """Build the lease it would be, or say what is wrong with the request; nothing is saved."""
    try:
        lease = asking.build(wanted, project=request.project, actor=request.actor, now=request.now)
    except Refused as refusal:
        return None, refusal
    return lease, None


def beyond(each: Sold, wanted: Wanted, bars: Sequence[meters.Bar]) -> Refused | None:
    """Tell which quota the gates would find too small, without taking anything."""
    if each.nano_per_hour is None:
        return NoPrice(f"{each.offering.label} has no price yet.", fix="Choose another slice.")
    units = each.offering.milli_units * wanted.quantity
    asked = {
        QuotaKind.UNITS.value: units,
        QuotaKind.GPU_SECONDS.value: units * wanted.max_duration_s,
        QuotaKind.BURN.value: each.nano_per_hour * wanted.quantity,
    }
    for bar in bars:
        if asked[bar.kind] > bar.limit - bar.used:
            return QuotaExceeded(
                f"The quota allows {bar.limit_words}; {bar.amount(bar.used)} are taken, {bar.free} are free, and"
                f" this asks for {bar.amount(asked[bar.kind])}.",
                fix="Ask for a smaller slice or a shorter time, or release a lease.",
            )
    return None


def most(each: Sold, wanted: Wanted, currency: str) -> Money | None:
    """Return what it costs at most: its whole time at today's price, rounded up."""
    if each.nano_per_hour is None or wanted.quantity < 1 or wanted.max_duration_s < 0:
        return None
    minor = at_most(
        wanted.max_duration_s, quantity=wanted.quantity, nano_per_hour=each.nano_per_hour, currency=currency
    )
    return Money(minor, currency)


def earliest_end(request: PageRequest, wanted: Wanted) -> datetime:
    by_duration = request.now + min(timedelta(seconds=wanted.max_duration_s), CENTURY)
    return min(by_duration, wanted.end_date) if wanted.end_date else by_duration


def distribution(took: Sequence[int]) -> Starts | None:
    """Count starts by the second; the rare slow ones beyond the last bar are part of it."""
    if len(took) < FEW:
        return None
    p50, p90 = took[len(took) // 2], took[len(took) * 9 // 10]
    width = max(1, -(-(took[-1] - took[0] + 1) // BARS))
    counts = [0] * ((took[-1] - took[0]) // width + 1)
    for each in took:
        counts[(each - took[0]) // width] += 1
    return Starts(tuple(counts), (p90 - took[0]) // width + 1, p50, p90, took[0], len(took))


def complaint(refusal: Refused) -> tuple[str, str]:
    """Return the field a refusal belongs to (none: the quote itself) and what to say there."""
    names = {"quantity": "count", "max_duration_s": "lasts", "end_date": "until"}
    place = names.get(refusal.field, refusal.field) if isinstance(refusal, Invalid) else ""
    return place, f"{refusal.detail} {refusal.fix.text}"


def others(lease: Lease, cost: Money, now: datetime) -> tuple[Other, ...]:
    """Return what else could start now, by the rules of the API's quotes."""
    found = alternatives.instead(lease, currency=cost.currency, cost=cost.minor, now=now)
    return tuple(other(each, lease) for each in found)


def other(each: Alternative, lease: Lease) -> Other:
    offering = each.offering
    free = f"{each.free} free now"
    return Other(
        icon=ICONS[each.kind],
        words="The same as spot" if each.kind == "spot" else offering.label,
        sub=free if each.kind == "spot" else f"{offering.memory_gb} GB, {free}",
        names=f"{offering.pk} {offering.price_class}",
        nano_per_hour=each.price.nano_per_hour * lease.quantity,
        more=each.difference_minor,
        currency=each.price.currency,
    )
