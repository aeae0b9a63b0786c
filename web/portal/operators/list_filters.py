"""Filters of operators' lists: tenant, days, state and words of the query string."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from billing.domain.periods import midnight
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from web.http.query_strings import LinkOption, page_url
from web.portal.audit.audit_filters import parse_day
from web.portal.operators.list_specs import OperatorList, row_value

FILTER_NAMES = ("q", "tenant", "since", "until")
MAX_TEXT_LENGTH = 120
UTC_ZONE = ZoneInfo("UTC")
FORMAT_NAMES = ("format", "list")  # of the download
PREVIEW_NAMES = ("try", "model", "tiers")  # of a price preview, whose form is not sent again
TENANT_ID = "ten_"
FEW_TENANTS = 100

TenantKeys = Sequence[str] | QuerySet[Any, Any]
Rows = QuerySet[Any, Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What the lists of a page are limited to, as typed and as read.

    A tenant is named by its id or part of its name; days are in UTC, both included. A value that cannot be
    read has an error, stays as it was typed, and no row matches.
    """

    typed: Mapping[str, str]
    errors: Mapping[str, str]
    since: date | None
    until: date | None
    state: str
    tenant_name: str  # of a tenant that is named by its id
    tenant_keys: TenantKeys  # of all tenants that are named
    offered: frozenset[str]  # the filters that the lists of the page have
    kept: tuple[tuple[str, str], ...]  # other parameters of the page
    states: tuple[LinkOption, ...]
    urls: Mapping[str, str]  # without one of the filters, and without any of them as `clear`

    @property
    def active(self) -> bool:
        return any(self.typed[name] for name in FILTER_NAMES)

    @property
    def tenant(self) -> str:
        return self.typed["tenant"]

    @property
    def tenant_id(self) -> str:
        """Return the tenant's id; empty if it is filtered by name or not at all."""
        return self.tenant if self.tenant_name else ""

    @property
    def words(self) -> str:
        return self.typed["q"]

    @property
    def days(self) -> str:
        """Return the chosen days in words; empty without any."""
        if self.since and self.until:
            return f"{self.since} – {self.until}"
        if self.since:
            return _("from {day}").format(day=self.since)
        return _("until {day}").format(day=self.until) if self.until else ""

    def require_valid(self) -> None:
        """Raise InvalidValue if a filter cannot be read.

        A file has no place for its error.
        """
        for name, error in self.errors.items():
            raise InvalidValue(name, error, fix=_("Correct the filter, or leave it out."))

    def limit(self, spec: OperatorList, rows: Rows, *, state: bool = True) -> Rows:
        """Return the rows of a list that match."""
        if self.errors:
            return rows.none() if isinstance(rows, QuerySet) else []
        if isinstance(rows, QuerySet):
            return self._limit_query(spec, rows, state=state)
        return [row for row in rows if self._matches(spec, row, state=state)]

    def _limit_query(self, spec: OperatorList, rows: QuerySet[Any, Any], *, state: bool) -> QuerySet[Any, Any]:
        if self.tenant and (spec.tenant or spec.tenant_rows):
            keys = self.tenant_keys
            theirs = spec.tenant_rows(keys) if spec.tenant_rows else Q(**{f"{spec.tenant}__in": keys})
            rows = rows.filter(theirs)
        if self.since and spec.at:
            rows = rows.filter(**{f"{spec.at}__gte": self.since if spec.by_day else _begin(self.since)})
        if self.until and spec.at:
            after = self.until + timedelta(days=1)
            rows = rows.filter(**{f"{spec.at}__lt": after if spec.by_day else _begin(after)})
        if self.words and spec.search:
            rows = rows.filter(_search(spec, self.words))
        where = spec.find_state(self.state).where if state and spec.states else None
        return rows.filter(where) if where else rows

    def _matches(self, spec: OperatorList, row: Any, *, state: bool) -> bool:
        """Return whether a row that was read matches."""
        if self.tenant and spec.tenant:
            name = row_value(row, spec.tenant_name)
            if self.tenant != row_value(row, spec.tenant) and self.tenant.casefold() not in str(name).casefold():
                return False
        if (self.since or self.until) and spec.at:
            at = row_value(row, spec.at)
            day = at if at is None or spec.by_day else at.astimezone(UTC_ZONE).date()
            if day is None or (self.since and day < self.since) or (self.until and day > self.until):
                return False
        if self.words and spec.search:
            words = self.words.casefold()
            if not any(words in str(row_value(row, each)).casefold() for each in spec.search):
                return False
        test = spec.find_state(self.state).test if state and spec.states else None
        return test is None or test(row)


def read_filter(request: HttpRequest, *lists: OperatorList) -> ListFilter:
    """Return the filter in the query string, for the lists of a page."""
    query = request.GET
    typed = {name: query.get(name, "").replace("\x00", "").strip()[:MAX_TEXT_LENGTH] for name in FILTER_NAMES}
    days = {name: parse_day(typed[name]) for name in ("since", "until")}
    errors = {
        name: _("“{text}” is not a day. Write it as 2026-12-01.").format(text=typed[name])
        for name, day in days.items()
        if typed[name] and day is None
    }
    since, until = days["since"], days["until"]
    if since and until and until < since:
        errors["until"] = _("The last day is before the first.")
    with_states = next((each for each in lists if each.states), None)
    state, states = "", tuple[LinkOption, ...]()
    if with_states:
        state, states = _read_state(request, with_states, errors)
    taken = (*FILTER_NAMES, *FORMAT_NAMES, *PREVIEW_NAMES, *position_names(lists))
    found = ListFilter(
        typed=typed,
        errors=errors,
        since=since,
        until=until,
        state=state,
        tenant_name=(tenant_name := _tenant_name(typed["tenant"])),
        tenant_keys=[typed["tenant"]] if tenant_name else _tenants_named(typed["tenant"]),
        offered=frozenset(name for each in lists for name in each.offered),
        kept=tuple((name, query[name]) for name in query if name not in taken),
        states=states,
        urls={
            "q": list_url(request, lists, q=None),
            "tenant": list_url(request, lists, tenant=None),
            "days": list_url(request, lists, since=None, until=None),
            "clear": list_url(request, lists, **dict.fromkeys(FILTER_NAMES)),
        },
    )
    request.list_filter = found  # type: ignore[attr-defined]  # its errors decide the status of the page
    return found


def position_names(lists: Sequence[OperatorList]) -> tuple[str, ...]:
    """Return the parameters that say where each list of a page begins."""
    return tuple("from" if n == 0 else f"{each.name}-from" for n, each in enumerate(lists))


def list_url(request: HttpRequest, lists: Sequence[OperatorList], **changes: str | None) -> str:
    """Return the page's URL with changed filters, at the first row of each list."""
    return page_url(request, **{**dict.fromkeys((*FORMAT_NAMES, *position_names(lists))), **changes})


def _read_state(request: HttpRequest, spec: OperatorList, errors: dict[str, str]) -> tuple[str, tuple[LinkOption, ...]]:
    """Return the chosen state and a tab for each; an unknown one is an error."""
    chosen = request.GET.get(spec.state_parameter, "").replace("\x00", "")[:MAX_TEXT_LENGTH]
    first = spec.states[0].value
    known = [each.value for each in spec.states]
    if chosen and chosen not in known:
        errors["state"] = _("“{text}” is not a state of this list.").format(text=chosen)
    state = chosen if chosen in known else first
    return state, tuple(
        {
            "url": list_url(request, (spec,), **{spec.state_parameter: each.value if each.value != first else None}),
            "label": str(each.label),
            "current": each.value == state and "state" not in errors,
        }
        for each in spec.states
    )


def _tenant_name(text: str) -> str:
    """Return the name of a tenant that is named by its id."""
    if not text.startswith(TENANT_ID):
        return ""
    return Tenant.objects.filter(pk=text).values_list("name", flat=True).first() or ""


def _tenants_named(text: str) -> TenantKeys:
    """Return the ids of tenants by a part of their name.

    Few are a list, which PostgreSQL plans better than a query.
    """
    if not text:
        return []
    named = Tenant.objects.filter(name__icontains=text).values_list("pk", flat=True)
    few = list(named[: FEW_TENANTS + 1])
    return few if len(few) <= FEW_TENANTS else named


def _begin(day: date) -> Any:
    return midnight(day, UTC_ZONE)


def _search(spec: OperatorList, words: str) -> Q:
    found = Q()
    for each in spec.search:
        if each.endswith("pk"):
            found |= Q(**{each: words})
        elif each == "tenant__name":  # of few tenants, instead of one comparison per row
            found |= Q(tenant__in=_tenants_named(words))
        else:
            found |= Q(**{f"{each}__icontains": words})
    return found
