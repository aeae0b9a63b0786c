"""Spend totals by group, rounded once per line as the invoice does."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from billing.domain.apportionment import apportion
from billing.domain.money import exponent_of, to_minor
from billing.services.rating import spend
from billing.services.rating.spend import SpendLine
from broker.models import Lease, Offering
from web.portal.page_context import PageRequest

SERIES = ("series-1", "series-5", "series-3", "series-2", "series-4", "series-6")  # series-6 is always "other"
MAX_COLOURED = len(SERIES) - 1
TAG_PREFIX = "tag:"  # prefix of a tag's name in the grouping parameter


@dataclass(frozen=True)
class SpendGroup:
    """One group, such as an offering or project: its cost and its slice-seconds."""

    key: str
    name: str
    minor: int
    unit_seconds: int
    kind: str = ""  # the colour of its series

    @property
    def tenths_of_hours(self) -> int:
        return (self.unit_seconds * 10 + 1800) // 3600

    @property
    def hours(self) -> str:
        return f"{self.tenths_of_hours // 10:,}.{self.tenths_of_hours % 10}"


@dataclass(frozen=True)
class SpendTotals:
    """All groups, largest first, and their sum, which equals the invoice's to the cent."""

    groups: tuple[SpendGroup, ...]
    currency: str

    @property
    def minor(self) -> int:
        return sum(group.minor for group in self.groups)

    @property
    def hours(self) -> str:
        return SpendGroup("", "", 0, sum(group.unit_seconds for group in self.groups)).hours

    @property
    def series(self) -> list[tuple[str, SpendGroup]]:
        """Return the groups with a colour of their own; the rest is one, last."""
        named = [(kind, group) for kind, group in zip(SERIES, self.groups[:MAX_COLOURED], strict=False)]
        rest = self.groups[MAX_COLOURED:]
        if rest:
            named.append((SERIES[-1], SpendGroup("", _("Other"), sum(g.minor for g in rest), 0)))
        return named

    def largest(self, rows: int) -> tuple[SpendGroup, ...]:
        """Return the largest groups, and the rest as one; the CSV has every group."""
        rest = self.groups[rows:]
        if not rest:
            return self.groups
        minor, seconds = sum(group.minor for group in rest), sum(group.unit_seconds for group in rest)
        return (
            *self.groups[:rows],
            SpendGroup("", _("{rest} more").format(rest=len(rest)), minor, seconds, SERIES[-1]),
        )

    def minor_of(self, key: str) -> int:
        return next((group.minor for group in self.groups if group.key == key), 0)

    def share(self, group: SpendGroup) -> str:
        """Return a group's share of the whole in percent, with one decimal."""
        tenths = (2000 * group.minor + self.minor) // (2 * self.minor) if self.minor else 0
        return f"{tenths // 10}.{tenths % 10} %"


def usage_lines(
    request: PageRequest, boundaries: Sequence[datetime], *, until: datetime, group: str
) -> list[SpendLine]:
    """Return the open project's usage lines per interval; one query.

    Only those of the price class in the query string.
    """
    if until <= boundaries[0]:
        return []
    cut, _, tag = group.partition(":")
    found = spend.spend_lines(boundaries, until=until, projects=request.scope.ids, cut=cut, tag=tag)
    return [line for line in found if group != "offering" or has_price_class(request, line.offering)]


def group_key(line: SpendLine, group: str) -> str:
    """Return the group that a line belongs to."""
    return {"project": line.project, "offering": line.offering}.get(group, line.part)


def spend_totals_by_group(request: PageRequest, lines: Iterable[SpendLine], *, group: str) -> SpendTotals:
    """Sum usage lines by group; intervals of one line are joined before rounding."""
    currency = request.tenant.currency
    exact = defaultdict[tuple[str, str, int], Counter[str]](Counter)
    seconds = Counter[str]()
    for line in lines:
        name = group_key(line, group)
        exact[line.project, line.offering, line.price_version][name] += line.exact_num
        seconds[name] += line.unit_seconds
    minor = Counter[str]()
    for parts in exact.values():  # a line is rounded once, and its parts add up to exactly that
        minor.update(apportion(to_minor(sum(parts.values()), exponent_of(currency)), parts))
    sums = {name: (minor[name], seconds[name]) for name in seconds}
    return SpendTotals(coloured_groups(request, sums, group), currency)


def coloured_groups(request: PageRequest, sums: dict[str, tuple[int, int]], group: str) -> tuple[SpendGroup, ...]:
    """Return the groups, largest first, each with its name and colour."""
    names, otherwise = group_names(request, set(sums), group)
    found = [(key, names.get(key, otherwise), minor, seconds) for key, (minor, seconds) in sums.items()]
    ordered = sorted(found, key=lambda each: (-each[2], each[1], each[0]))
    return tuple(SpendGroup(*each, SERIES[min(i, MAX_COLOURED)]) for i, each in enumerate(ordered))


def group_names(request: PageRequest, keys: set[str], group: str) -> tuple[dict[str, str], str]:
    """Return the names of groups by key, and the name for one without any."""
    if group == "project":
        return {p.pk: p.name for p in request.projects}, "archived project"
    if group == "user":
        leases = Lease.objects.filter(tenant=request.tenant, requested_by__in=keys - {""})
        return dict(leases.values_list("requested_by", "requested_by_label").distinct()), "no user"
    if group.startswith(TAG_PREFIX):
        return {key: key for key in keys - {""}}, _("without the tag {tag_prefix}").format(
            tag_prefix=group.removeprefix(TAG_PREFIX)
        )
    return offering_names(all_offerings(request)), ""


def has_price_class(request: PageRequest, offering: str) -> bool:
    """Return whether an offering has the price class in the query string."""
    wanted = request.GET.get("class", "")
    return wanted not in ("on_demand", "spot") or all_offerings(request)[offering].price_class == wanted


def all_offerings(request: PageRequest) -> dict[str, Offering]:
    """Return every offering by id, read once per request."""
    if not hasattr(request, "_offerings"):
        request._offerings = {each.pk: each for each in Offering.objects.all()}  # type: ignore[attr-defined]
    return request._offerings  # type: ignore[attr-defined, no-any-return]


def offering_names(rows: dict[str, Offering]) -> dict[str, str]:
    """Return distinguishing names of offerings: label, spot, and the region where needed."""
    labels = [(o.label, o.price_class) for o in rows.values()]
    return {
        o.pk: o.label
        + (", spot" if o.price_class == "spot" else "")
        + (f", {o.region}" if labels.count((o.label, o.price_class)) > 1 else "")
        for o in rows.values()
    }
