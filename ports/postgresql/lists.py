"""A long list is one value. PostgreSQL takes 65,535 values beside a statement, and a fleet has more objects.

`name IN ($1, …, $70000)` becomes `name = ANY($1)`: for what we write, and for the lists Django makes of its own
accord, as prefetching does. Short ones stay as they were. What has an expression in it, or values of several kinds,
cannot be an array.
"""

from datetime import datetime
from typing import Any

from django.db.models import Field, ForeignObject
from django.db.models.fields.related_lookups import RelatedIn
from django.db.models.lookups import In
from psycopg.types.numeric import Int8

LONG = 100
KINDS = (str, int, Int8, datetime)
ARRAY = "ANY(%s)"


class _AsOne(In):
    def process_rhs(self, compiler: Any, connection: Any) -> Any:
        sql, values = super().process_rhs(compiler, connection)
        if len(values) > LONG and _plain(sql, len(values)) and _alike(values):
            return ARRAY, [list(values)]
        return sql, values

    def get_rhs_op(self, connection: Any, rhs: Any) -> str:
        return f"= {rhs}" if rhs == ARRAY else super().get_rhs_op(connection, rhs)


def _plain(sql: str, count: int) -> bool:
    return sql == f"({', '.join(['%s'] * count)})"


def _alike(values: Any) -> bool:
    return any(all(type(value) is kind for value in values) for kind in KINDS)


@Field.register_lookup
class LongIn(_AsOne):
    """Django's IN of a column's own values."""


@ForeignObject.register_lookup
class LongRelatedIn(_AsOne, RelatedIn):
    """Django's IN of a relation."""
