"""Pages, counts, totals and CSV of operators' lists."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.domain.csv_tables import render_csv
from billing.domain.money import Money, decimal_string
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from web.http import downloads
from web.http.query_strings import LinkOption
from web.portal.actions import LIST_PAGE_SIZE, first_row_index
from web.portal.authentication import SAFE
from web.portal.operators.list_filters import ListFilter, Rows, list_url, position_names, read_filter
from web.portal.operators.list_specs import OperatorList, row_value

BATCH_SIZE = 2000  # rows of a CSV that are in memory
MAX_COUNT = 10_000  # rows that a page counts; more are not worth a scan of the table
MAX_START = 100_000_000  # index of a page's first row
DEEP = 1_000  # from this row on, a page is read by its keys


@dataclass(frozen=True, slots=True)
class ListTotal:
    """A sum over all filtered rows, in each currency."""

    label: str
    amounts: Sequence[Money]


@dataclass(frozen=True, slots=True)
class FilteredList:
    """One page of a filtered list, with count, totals and URLs."""

    spec: OperatorList
    filter: ListFilter
    rows: list[Any]
    count: int  # at most MAX_COUNT + 1
    start: int  # index of the first row
    totals: list[ListTotal]
    before: str
    after: str
    csv: str

    @property
    def count_text(self) -> str:
        if self.count > MAX_COUNT:
            return _("more than {n} rows").format(n=f"{MAX_COUNT:,}")
        return ngettext("{n} row", "{n} rows", self.count).format(n=f"{self.count:,}")

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def end(self) -> int:
        return self.start + len(self.rows)

    @property
    def paged(self) -> bool:
        return bool(self.before or self.after)

    def with_rows(self, rows: Sequence[Any]) -> "FilteredList":
        """Return the list with what the page shows for each of its rows."""
        return replace(self, rows=list(rows))


@dataclass(frozen=True, slots=True)
class PageLists:
    """The lists of a page, read with one filter."""

    request: HttpRequest
    filter: ListFilter
    specs: tuple[OperatorList, ...]

    def read(self, spec: OperatorList, rows: Rows, *, most: int = LIST_PAGE_SIZE, totals: bool = True) -> FilteredList:
        """Read one page of a list, its count and its totals."""
        found = self.filter.limit(spec, rows)
        name = position_names(self.specs)[self.specs.index(spec)]
        start = first_row_index(self.request.GET.get(name, ""), MAX_START)
        read = _read_from(found, start, most + 1)
        if start and not read:
            start, read = 0, list(found[: most + 1])
        count = len(read) if not start and len(read) <= most else _count(found)
        return FilteredList(
            spec=spec,
            filter=self.filter,
            rows=read[:most],
            count=count,
            start=start,
            totals=_totals(spec, found) if totals and read else [],
            before=self._page_at(name, max(start - most, 0)) if start else "",
            after=self._page_at(name, start + most) if len(read) > most else "",
            csv=list_url(self.request, self.specs, format="csv", list=spec.name if spec is not self.specs[0] else None),
        )

    def count_states(self, spec: OperatorList, rows: Rows) -> ListFilter:
        """Return the filter with the number of rows beside each state."""
        found = self.filter.limit(spec, rows, state=False)
        if isinstance(found, QuerySet):
            wanted = {
                f"n{n}": Count("pk", filter=each.where) if each.where else Count("pk")
                for n, each in enumerate(spec.states)
            }
            counts = list(found.order_by().aggregate(**wanted).values())
        else:
            counts = [sum(each.test is None or each.test(row) for row in found) for each in spec.states]
        tabs = zip(self.filter.states, counts, strict=True)
        return replace(self.filter, states=tuple(LinkOption(**tab, count=count) for tab, count in tabs))

    def csv(self, *sources: tuple[OperatorList, Callable[[], Rows]]) -> HttpResponseBase:
        """Return all filtered rows of one list as CSV.

        The query string names it; the default is the first.
        """
        self.filter.require_valid()
        named = self.request.GET.get("list", "") or sources[0][0].name
        for spec, read_rows in sources:
            if spec.name == named:
                return csv_list(spec.name, spec.heads.split(), _csv_rows(spec, self.filter.limit(spec, read_rows())))
        raise InvalidValue(
            "list", _("This page has no list {name!r}.").format(name=named), fix=_("Use the CSV link of a list.")
        )

    def _page_at(self, name: str, start: int) -> str:
        query = self.request.GET.copy()
        query[name] = str(start)
        return f"?{query.urlencode()}"


def wants_csv(request: HttpRequest) -> bool:
    """Return whether a list is asked for as CSV."""
    return request.method in SAFE and request.GET.get("format") == "csv"


def read_lists(request: HttpRequest, *specs: OperatorList) -> PageLists:
    """Return the lists of a page, with the filter in its query string."""
    return PageLists(request, read_filter(request, *specs), specs)


def csv_list(name: str, heads: Sequence[str], rows: Iterator[Sequence[object]]) -> HttpResponseBase:
    """Return all rows of a list as a CSV download."""
    return downloads.streamed_csv_response(f"{name}.csv", render_csv(heads, rows))


def csv_time(at: Any) -> str:
    """Write a time of a CSV list in UTC; a day as it is."""
    if at is None:
        return ""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(at, datetime) else f"{at:%Y-%m-%d}"


def csv_money(minor: int | None, currency: str) -> str:
    """Write an amount of a CSV list as a plain decimal; empty without one."""
    return "" if minor is None else decimal_string(minor, currency)


def _csv_rows(spec: OperatorList, rows: Rows) -> Iterator[Sequence[object]]:
    """Yield the cells of all rows.

    A long file is sent after the request's transaction has ended: the keys are read first, and then the rows
    in batches, each with an access of its own.
    """
    if not isinstance(rows, QuerySet):
        yield from map(spec.cells, rows)
        return
    keys = list(rows.values_list("pk", flat=True))
    for start in range(0, len(keys), BATCH_SIZE):
        batch = keys[start : start + BATCH_SIZE]
        with staff_scope():
            found = {row.pk: row for row in rows.order_by().filter(pk__in=batch)}
            cells = [spec.cells(found[key]) for key in batch if key in found]
        yield from cells


def _read_from(rows: Rows, start: int, most: int) -> list[Any]:
    """Return some rows.

    Far from the first, only keys are read up to there, without what is joined.
    """
    if start < DEEP or not isinstance(rows, QuerySet):
        return list(rows[start : start + most])
    keys = list(rows.values_list("pk", flat=True)[start : start + most])
    return list(rows.filter(pk__in=keys))


def _count(rows: Rows) -> int:
    """Count the rows, up to one more than a page says."""
    if not isinstance(rows, QuerySet):
        return len(rows)
    return rows.order_by()[: MAX_COUNT + 1].count()


def _totals(spec: OperatorList, rows: Rows) -> list[ListTotal]:
    """Return the sums of a list over all filtered rows; one query."""
    if not spec.sums:
        return []
    sums: dict[str, list[int]] = {}
    currency = spec.sums[0].currency
    if isinstance(rows, QuerySet):
        wanted = {f"sum{n}": Sum(each.column) for n, each in enumerate(spec.sums)}
        for code, *found in rows.order_by().values_list(currency).annotate(**wanted).order_by(currency):
            sums[code] = [int(minor or 0) for minor in found]
    else:
        for row in rows:
            added = sums.setdefault(row_value(row, currency), [0] * len(spec.sums))
            for n, each in enumerate(spec.sums):
                added[n] += row_value(row, each.column) or 0
    return [
        ListTotal(str(each.label), [Money(found[n], code) for code, found in sorted(sums.items()) if code])
        for n, each in enumerate(spec.sums)
    ]
