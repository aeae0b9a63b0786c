"""Live quote beside the launch form: price, maximum cost, quota left, placement, alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.services.approvals import approval_gate
from billing.services.catalogue.price_list import NoPrice
from billing.services.funds.budgets import budget_balances
from billing.services.funds.budgets.budget_balances import BudgetRoom
from billing.services.funds.costs import lease_maximums
from billing.services.funds.holds import budget_holds
from billing.services.quotes import alternatives
from billing.services.quotes.alternatives import OfferingAlternative
from billing.services.quotes.quote_answers import offer_price
from billing.services.quotes.quote_signatures import QuoteOffer
from broker.models import Lease, Offering
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.leases import lease_requests
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.queue import open_capacity, reclaim_risks, spot_reclaims
from broker.services.queue.queue_positions import recent_start_times
from broker.services.queue.reclaim_risks import SpotConditions
from broker.services.volumes import volume_mounts
from tenants.models import QuotaKind
from tenants.services.errors import InvalidValue, ProblemError, QuotaExceeded
from web.portal.layout import account_status, usage_meters
from web.portal.leases import placement_diagram
from web.portal.leases.placement_diagram import LeaseGpuDrawing
from web.portal.offerings.offering_list import PricedOffering
from web.portal.page_context import PageRequest
from web.ui.formatting import format_gpu_memory

FEWEST_STARTS = 5  # fewest starts that make a distribution
MAX_HISTOGRAM_BARS = 14
ALTERNATIVE_ICONS = {"spot": "coin-euro", "cheaper": "arrow-down-right", "faster": "bolt"}
CENTURY = timedelta(days=36_525)  # longer than any lease may last; keeps the date in range


@dataclass(frozen=True)
class StartTimes:
    """Distribution of past start times: counts per bar, and where the slowest tenth begins."""

    counts: tuple[int, ...]
    slow_from_bar: int
    p50: int
    p90: int
    fastest: int
    count: int


@dataclass(frozen=True)
class QuoteAlternative:
    """An alternative that could be launched, with the difference in cost."""

    icon: str
    title: str
    detail: str
    form_value: str  # offering id and price class, as the form sends them
    nano_per_hour: int
    difference: int  # minor units more over the whole duration; negative is less
    currency: str


@dataclass(frozen=True)
class LiveQuote:
    """Quote shown beside the form; nothing is stored until a lease redeems it."""

    lease_request: LeaseRequest
    currency: str
    nano_per_hour: int | None  # for all slices together
    max_cost: Money | None
    units: int  # milli-units of quota it takes
    quota: usage_meters.QuotaBar | None
    budget: BudgetRoom | None
    drawings: tuple[LeaseGpuDrawing, ...] = ()
    starts_now: bool = False
    start_times: StartTimes | None = None
    ends_at: datetime | None = None
    problem: ProblemError | None = None
    alternatives: tuple[QuoteAlternative, ...] = field(default=())
    offer: QuoteOffer | None = None  # the signed quote, which the form sends along
    spot: SpotConditions | None = None  # of a spot offering
    free_start_s: int = 0  # a lease preempted within this time is free
    waits_at_most_s: int | None = None  # for the notice that spot leases would get for it
    approval: ApprovalRequired | None = None  # why it must be approved first

    @property
    def start_times_text(self) -> str:
        known = self.start_times
        return (
            _("{count} starts: half within {p50} s, nine of ten within {p90} s").format(
                count=known.count, p50=known.p50, p90=known.p90
            )
            if known
            else ""
        )

    @property
    def quota_left(self) -> str:
        """Return the units of quota that stay free after it."""
        if self.quota is None:
            return ""
        return self.quota.amount(max(self.quota.limit - self.quota.used - self.units, 0))

    @property
    def budget_left(self) -> Money | None:
        """Return what stays of this month's budget if all of it falls into this month."""
        if self.budget is None or self.max_cost is None:
            return None
        return Money(max(self.budget.left - self.max_cost.minor, 0), self.currency)


def live_quote(request: PageRequest, each: PricedOffering, wanted: LeaseRequest, *, array_size: int = 1) -> LiveQuote:
    """Compute the quote from the current state; nothing is reserved or written."""
    offering = each.offering
    nano = each.nano_per_hour * wanted.quantity if each.nano_per_hour is not None else None
    possible = 1 <= wanted.quantity <= lease_requests.MAX_QUANTITY
    placement = None
    if possible:
        home = volume_mounts.cluster_name_of(wanted.volume)
        placement = open_capacity.preview_open_placement(
            offering,
            now=request.now,
            quantity=wanted.quantity,
            same_node=wanted.same_node or bool(wanted.topology),
            topology=wanted.topology,
            cluster=home,
        )
    lease, refused = build_lease(request, wanted)
    bars = usage_meters.quota_bars(request.project, now=request.now, currency=request.tenant.currency)
    room = budget_balances.tightest_budget(request.project, now=request.now)
    limited = lease and (room or account_status.tenant_terms(request.scope))
    no_funds = budget_holds.find_refusal(lease, now=request.now) if lease and limited else None
    cost = maximum_cost(each, wanted, request.tenant.currency, request.now)
    return LiveQuote(
        lease_request=wanted,
        currency=request.tenant.currency,
        nano_per_hour=nano,
        max_cost=cost,
        units=offering.milli_units * wanted.quantity,
        quota=next((bar for bar in bars if bar.kind == QuotaKind.UNITS), None),
        budget=room,
        drawings=tuple(placement_diagram.preview_drawings(placement, profile=profile_of(offering).name))
        if placement
        else (),
        starts_now=placement is not None,
        start_times=start_time_distribution(recent_start_times(request.tenant.pk, offering)),
        ends_at=earliest_end(request, wanted),
        problem=refused or exceeded_quota(each, wanted, bars) or no_funds,
        approval=approval_gate.find_required(lease, array_size=array_size, now=request.now) if lease else None,
        alternatives=quote_alternatives(lease, cost, request.now) if lease and cost else (),
        offer=offer_price(lease, each.price, now=request.now) if lease else None,
        spot=reclaim_risks.load_spot_conditions([offering], now=request.now).get(offering.pk),
        free_start_s=each.price.free_start_s if each.price else 0,
        waits_at_most_s=spot_reclaims.preview_notice_s(lease, now=request.now) if lease and not placement else None,
    )


def build_lease(request: PageRequest, wanted: LeaseRequest) -> tuple[Lease | None, ProblemError | None]:
    """Build the lease without saving it, or return why it is refused."""
    try:
        lease = lease_requests.build_lease(wanted, project=request.project, actor=request.actor, now=request.now)
    except ProblemError as refusal:
        return None, refusal
    return lease, None


def exceeded_quota(
    each: PricedOffering, wanted: LeaseRequest, bars: Sequence[usage_meters.QuotaBar]
) -> ProblemError | None:
    """Return the quota that the gates would find exceeded, without taking anything."""
    if each.nano_per_hour is None:
        return NoPrice(
            _("{offering_label} has no price yet.").format(offering_label=each.offering.label),
            fix=_("Choose another slice."),
        )
    units = each.offering.milli_units * wanted.quantity
    needed = {
        QuotaKind.UNITS.value: units,
        QuotaKind.GPU_SECONDS.value: units * wanted.max_duration_s,
        QuotaKind.BURN.value: each.nano_per_hour * wanted.quantity,
    }
    for bar in bars:
        if needed[bar.kind] > bar.limit - bar.used:
            return QuotaExceeded(
                _("The quota is {limit_words}; {used} are used, {free} are free, and this needs {kind}.").format(
                    limit_words=bar.limit_text,
                    used=bar.amount(bar.used),
                    free=bar.free,
                    kind=bar.amount(needed[bar.kind]),
                ),
                fix=_("Choose a smaller slice or a shorter duration, or release a lease."),
            )
    return None


def maximum_cost(each: PricedOffering, wanted: LeaseRequest, currency: str, now: datetime) -> Money | None:
    """Return the maximum cost at today's price; None without one."""
    if each.nano_per_hour is None or wanted.quantity < 1 or wanted.max_duration_s < 0:
        return None
    return lease_maximums.request_maximum(wanted, nano_per_hour=each.nano_per_hour, currency=currency, now=now)


def earliest_end(request: PageRequest, wanted: LeaseRequest) -> datetime:
    starts = max(request.now, wanted.starts_at or request.now)
    by_duration = starts + min(timedelta(seconds=wanted.max_duration_s), CENTURY)
    return min(by_duration, wanted.end_date) if wanted.end_date else by_duration


def start_time_distribution(took: Sequence[int]) -> StartTimes | None:
    """Return the distribution of start times; slow outliers share the last bar."""
    if len(took) < FEWEST_STARTS:
        return None
    p50, p90 = took[len(took) // 2], took[len(took) * 9 // 10]
    width = max(1, -(-(took[-1] - took[0] + 1) // MAX_HISTOGRAM_BARS))
    counts = [0] * ((took[-1] - took[0]) // width + 1)
    for each in took:
        counts[(each - took[0]) // width] += 1
    return StartTimes(tuple(counts), (p90 - took[0]) // width + 1, p50, p90, took[0], len(took))


def field_error(refusal: ProblemError) -> tuple[str, str]:
    """Return the field a refusal belongs to and its text; empty for the quote itself."""
    names = {"quantity": "count", "max_duration_s": "lasts", "end_date": "until", "starts_at": "starts"}
    names |= {"extend_by_s": "extend_by", "extend_limit_s": "extend_limit", "attempt_limit_s": "attempt_limit"}
    place = names.get(refusal.field, refusal.field) if isinstance(refusal, InvalidValue) else ""
    return place, f"{refusal.detail} {refusal.fix.text}"


def quote_alternatives(lease: Lease, cost: Money, now: datetime) -> tuple[QuoteAlternative, ...]:
    """Return what else could start now, by the same rules as the API's quotes."""
    found = alternatives.find_alternatives(lease, currency=cost.currency, cost=cost.minor, now=now)
    return tuple(quote_alternative(each, lease) for each in found)


def quote_alternative(each: OfferingAlternative, lease: Lease) -> QuoteAlternative:
    offering = each.offering
    free = _("{free} free now").format(free=each.free)
    return QuoteAlternative(
        icon=ALTERNATIVE_ICONS[each.kind],
        title=_spot_title(offering) if each.kind == "spot" else offering.label,
        detail=free if each.kind == "spot" else f"{format_gpu_memory(offering.memory_gb)}, {free}",
        form_value=f"{offering.pk} {offering.price_class}",
        nano_per_hour=each.price.nano_per_hour * lease.quantity,
        difference=each.difference_minor,
        currency=each.price.currency,
    )


def _spot_title(offering: Offering) -> str:
    return _("Same size, spot price") if offering.is_cpu_only else _("Same GPU, spot price")
