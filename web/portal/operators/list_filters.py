"""Filters of operators' lists by tenant and day, with totals and CSV."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet, Sum
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from billing.domain.csv_tables import render_csv
from billing.domain.money import Money
from billing.domain.periods import midnight
from tenants.models import Tenant
from web.http import downloads
from web.http.query_strings import page_url
from web.portal.audit.audit_filters import parse_day

FILTER_NAMES = ("tenant", "since", "until")
MAX_TEXT_LENGTH = 120
BATCH_SIZE = 2000
UTC_ZONE = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class ListTotal:
    """A sum over all filtered rows, in each currency."""

    label: str
    amounts: Sequence[Money]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What a list is limited to.

    A tenant is named by its id or part of its name; days are in UTC, both included.
    """

    tenant: str
    since: date | None
    until: date | None
    kept: tuple[tuple[str, str], ...]  # other parameters of the page
    csv_url: str
    clear_url: str

    @property
    def active(self) -> bool:
        return bool(self.tenant or self.since or self.until)

    def apply(self, rows: QuerySet[Any], *, at: str, tenant: str = "tenant_id") -> QuerySet[Any]:
        """Return the rows of the tenant and the days."""
        if self.tenant and tenant:
            named = Tenant.objects.filter(Q(pk=self.tenant) | Q(name__icontains=self.tenant))
            rows = rows.filter(**{f"{tenant}__in": named.values("pk")})
        if self.since:
            rows = rows.filter(**{f"{at}__gte": midnight(self.since, UTC_ZONE)})
        if self.until:
            rows = rows.filter(**{f"{at}__lt": midnight(self.until + timedelta(days=1), UTC_ZONE)})
        return rows


def list_filter(request: HttpRequest) -> ListFilter:
    """Return the filter in the query string; what is malformed is ignored."""
    query = request.GET
    kept = ((name, query[name]) for name in query if name not in (*FILTER_NAMES, "format", "from", "before"))
    return ListFilter(
        tenant=query.get("tenant", "").replace("\x00", "").strip()[:MAX_TEXT_LENGTH],
        since=parse_day(query.get("since", "")),
        until=parse_day(query.get("until", "")),
        kept=tuple(kept),
        csv_url=page_url(request, format="csv", **{"from": None, "before": None}),
        clear_url=page_url(request, **dict.fromkeys((*FILTER_NAMES, "from", "before"))),
    )


def wants_csv(request: HttpRequest) -> bool:
    """Return whether the list is asked for as CSV."""
    return request.GET.get("format") == "csv"


def sum_amounts(rows: QuerySet[Any], column: str, *, currency: str = "currency") -> list[Money]:
    """Return the sum of a column over all rows, in each currency; one query."""
    found = rows.order_by().values_list(currency).annotate(all=Sum(column)).order_by(currency)
    return [Money(int(minor or 0), code) for code, minor in found if code]


def csv_list(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponseBase:
    """Return all rows of a list as a CSV download."""
    return downloads.streamed_csv_response(f"{name}.csv", render_csv(heads, rows))


def csv_time(at: Any) -> str:
    """Write a time of a CSV list, in UTC; empty without one."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at else ""
