"""What a stretch of time came to, group by group, rounded as the invoice rounds: once per line."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from billing.domain.money import exponent_of, to_minor
from billing.domain.sharing import shared
from billing.portal.pages import PageRequest
from billing.services import spend
from billing.services.spend import Line
from broker.models import Lease, Offering

SERIES = ("f1", "f5", "f3", "f2", "f4", "f6")  # f6 is always "other"
NAMED = len(SERIES) - 1
TAG = "tag:"  # before the name of the tag that groups


@dataclass(frozen=True)
class Group:
    """One offering or project: what it came to, and for how long it was held."""

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
class Tally:
    """All groups, largest first, and their sum, which is the invoice's to the cent."""

    groups: tuple[Group, ...]
    currency: str

    @property
    def minor(self) -> int:
        return sum(group.minor for group in self.groups)

    @property
    def hours(self) -> str:
        return Group("", "", 0, sum(group.unit_seconds for group in self.groups)).hours

    @property
    def series(self) -> list[tuple[str, Group]]:
        """The groups that get a colour of their own; whatever else there is comes last, as one."""
        named = [(kind, group) for kind, group in zip(SERIES, self.groups[:NAMED], strict=False)]
        rest = self.groups[NAMED:]
        if rest:
            named.append((SERIES[-1], Group("", "Other", sum(g.minor for g in rest), 0)))
        return named

    def most(self, rows: int) -> tuple[Group, ...]:
        """Return the largest groups, and all the rest as one where there are more; the CSV has every one."""
        rest = self.groups[rows:]
        if not rest:
            return self.groups
        minor, seconds = sum(group.minor for group in rest), sum(group.unit_seconds for group in rest)
        return (*self.groups[:rows], Group("", f"{len(rest)} more", minor, seconds, SERIES[-1]))

    def minor_of(self, key: str) -> int:
        return next((group.minor for group in self.groups if group.key == key), 0)

    def share(self, group: Group) -> str:
        """A group's part of the whole in percent, with one decimal."""
        tenths = (2000 * group.minor + self.minor) // (2 * self.minor) if self.minor else 0
        return f"{tenths // 10}.{tenths % 10} %"


def asked(request: PageRequest, borders: Sequence[datetime], *, until: datetime, group: str) -> list[Line]:
    """Return the lines of the open project in each stretch, of the price class the address asks for; one query."""
    if until <= borders[0]:
        return []
    cut, _, tag = group.partition(":")
    found = spend.lines(borders, until=until, projects=request.scope.ids, cut=cut, tag=tag)
    return [line for line in found if group != "offering" or sold(request, line.offering)]


def key_of(line: Line, group: str) -> str:
    """Return which group a line belongs to."""
    return {"project": line.project, "offering": line.offering}.get(group, line.part)


def tally(request: PageRequest, lines: Iterable[Line], *, group: str) -> Tally:
    """Add lines up group by group; stretches of one line are joined before they are rounded."""
    currency = request.tenant.currency
    exact = defaultdict[tuple[str, str, int], Counter[str]](Counter)
    seconds = Counter[str]()
    for line in lines:
        name = key_of(line, group)
        exact[line.project, line.offering, line.price_version][name] += line.exact_num
        seconds[name] += line.unit_seconds
    minor = Counter[str]()
    for parts in exact.values():  # a line is rounded once, and those it falls to share just that
        minor.update(shared(to_minor(sum(parts.values()), exponent_of(currency)), parts))
    sums = {name: (minor[name], seconds[name]) for name in seconds}
    return Tally(coloured(request, sums, group), currency)


def coloured(request: PageRequest, sums: dict[str, tuple[int, int]], group: str) -> tuple[Group, ...]:
    """Return the groups, largest first, each with its name and the colour of its series."""
    names, otherwise = known(request, set(sums), group)
    found = [(key, names.get(key, otherwise), minor, seconds) for key, (minor, seconds) in sums.items()]
    ordered = sorted(found, key=lambda each: (-each[2], each[1], each[0]))
    return tuple(Group(*each, SERIES[min(i, NAMED)]) for i, each in enumerate(ordered))


def known(request: PageRequest, keys: set[str], group: str) -> tuple[dict[str, str], str]:
    """Return the names of groups by key, and what one is called that has none here."""
    if group == "project":
        return {p.pk: p.name for p in request.projects}, "archived project"
    if group == "user":
        asked = Lease.objects.filter(tenant=request.tenant, requested_by__in=keys - {""})
        return dict(
            asked.values_list("requested_by", "requested_by_label").distinct()
        ), "nobody in particular"
    if group.startswith(TAG):
        return {key: key for key in keys - {""}}, f"without the tag {group.removeprefix(TAG)}"
    return named(offerings(request)), ""


def sold(request: PageRequest, offering: str) -> bool:
    """Tell whether an offering is of the price class that the address asks for."""
    wanted = request.GET.get("class", "")
    return wanted not in ("on_demand", "spot") or offerings(request)[offering].price_class == wanted


def offerings(request: PageRequest) -> dict[str, Offering]:
    """Return every offering by id, read once per request."""
    if not hasattr(request, "_offerings"):
        request._offerings = {each.pk: each for each in Offering.objects.all()}  # type: ignore[attr-defined]
    return request._offerings  # type: ignore[attr-defined, no-any-return]


def named(rows: dict[str, Offering]) -> dict[str, str]:
    """Return what tells offerings apart: label, spot, and the region where several sell the same."""
    labels = [(o.label, o.price_class) for o in rows.values()]
    return {
        o.pk: o.label
        + (", spot" if o.price_class == "spot" else "")
        + (f", {o.region}" if labels.count((o.label, o.price_class)) > 1 else "")
        for o in rows.values()
    }
