"""Pagination of charges, whose key has several columns and is written as one id."""

from types import SimpleNamespace
from typing import Any

from django.db.models import Case, CharField, IntegerField, QuerySet, Value, When
from django.db.models.functions import Cast, Concat, LPad

from billing.models import RatedCharge
from billing.models.charges import ChargeKind
from web.http.pagination import CursorPagePagination

SEQ_DIGITS, KEY_DIGITS = 10, 19


def _digits(column: str, count: int) -> LPad:
    # Parameters are sent as bigint (ports/postgres), but LPAD's length is an integer.
    return LPad(Cast(column, CharField()), Cast(Value(count), IntegerField()), Value("0"))


def with_ids(charges: QuerySet[RatedCharge]) -> QuerySet[RatedCharge]:
    """Annotate charges with an id that sorts by lease, transition, price and month.

    It also tells parts and kinds of charges apart.
    """
    dash = Value("-")
    part = Case(When(part=0, then=Value("")), default=Concat(dash, Cast("part", CharField())), output_field=CharField())
    kind = Case(When(kind=ChargeKind.USAGE, then=Value("")), default=Concat(dash, "kind"))
    return charges.annotate(
        id=Concat(
            "lease_id",
            dash,
            _digits("seq", SEQ_DIGITS),
            dash,
            _digits("price_version_id", KEY_DIGITS),
            dash,
            _digits("period_id", KEY_DIGITS),
            part,
            kind,
            output_field=CharField(),
        )
    )


class ChargePagination(CursorPagePagination):
    """Cursor pagination over the id above; a composite key has no text of its own."""

    @staticmethod
    def _write(row: Any, sort: str, column: str) -> str:
        return CursorPagePagination._write(SimpleNamespace(pk=row.id), sort, "pk")
