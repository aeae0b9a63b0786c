"""Description of an operators' list: its filters, sums and CSV columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.functional import Promise

LazyText = str | Promise


@dataclass(frozen=True, slots=True)
class ListState:
    """A state that a list can be filtered by.

    By a query, or by a test of rows that are read.
    """

    value: str
    label: LazyText
    where: Q | None = None
    test: Callable[[Any], bool] | None = None


@dataclass(frozen=True, slots=True)
class ListSum:
    """A column of amounts in minor units, which the list adds up in each currency."""

    label: LazyText
    column: str
    currency: str = "currency"


@dataclass(frozen=True, slots=True)
class OperatorList:
    """A list of operators; what its rows have, it can be filtered by.

    Columns are look-ups such as `tenant__name`, also of rows that are no models.
    """

    name: str  # of its file, and of its parameters on a page with several lists
    heads: str  # the names of its CSV columns, in one text
    cells: Callable[[Any], Sequence[object]]
    tenant: str = ""  # the column with the tenant's id
    tenant_rows: Callable[[Any], Q] | None = None  # instead, where a row concerns several tenants
    tenant_name: str = "tenant__name"  # only for rows that are no models
    at: str = ""  # the column with the time
    by_day: bool = False  # `at` holds days
    states: Sequence[ListState] = ()  # the first is the default
    state_parameter: str = "state"
    search: Sequence[str] = ()  # the columns in which words are searched for
    sums: Sequence[ListSum] = ()

    @property
    def offered(self) -> set[str]:
        """Return the names of the filters that this list has."""
        has = {"tenant": self.tenant or self.tenant_rows, "days": self.at, "state": self.states, "q": self.search}
        return {name for name, column in has.items() if column}

    def find_state(self, value: str) -> ListState:
        return next(each for each in self.states if each.value == value)


def row_value(row: Any, column: str) -> Any:
    """Return a row's value of a column, whose name may follow relations."""
    for name in column.split("__"):
        if row is None:
            return None
        row = getattr(row, name)
    return row
