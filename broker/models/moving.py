"""A lease's row and its ledger change in one statement: whoever comes second changes neither."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models

# The ledger is only written where the row was still as it was read. An extension writes no step but always lets
# the lease last longer, so its length tells whether the terms it was judged by still hold.
MOVE = """
WITH moved AS (
  UPDATE broker_lease SET version = version + 1, {assignments}
   WHERE id = %s AND state = %s AND seq = %s AND max_duration_s = %s RETURNING id
)
INSERT INTO broker_transition ({columns})
SELECT step.* FROM (VALUES {rows}) AS step ({columns}) WHERE EXISTS (SELECT FROM moved)
"""


def move(
    lease: models.Model,
    changes: Mapping[str, object],
    steps: Sequence[models.Model],
    *,
    seen: tuple[str, str, int, int],
) -> bool:
    """Write a lease's changed columns and the rows of its ledger; False when `seen` is so no more."""
    columns, written = _columns(steps[0]), [value for step in steps for value in _values(step)]
    fields = {field.name: field for field in lease._meta.concrete_fields}
    assigned = [(fields[name], value) for name, value in changes.items()]
    row = "(" + ", ".join(["%s"] * len(columns)) + ")"
    statement = MOVE.format(
        assignments=", ".join(f"{field.column} = %s" for field, _ in assigned),
        columns=", ".join(columns),
        rows=", ".join([row] * len(steps)),
    )
    asked: list[Any] = [field.get_db_prep_save(value, connection) for field, value in assigned]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*asked, *seen, *written])
        return bool(cursor.rowcount == len(steps))


def _stored(row: models.Model) -> "list[models.Field[Any, Any]]":
    """Leave out what the database writes by itself."""
    return [field for field in row._meta.concrete_fields if not field.has_db_default()]


def _columns(row: models.Model) -> list[str]:
    return [str(field.column) for field in _stored(row)]


def _values(row: models.Model) -> list[Any]:
    return [field.get_db_prep_save(getattr(row, field.attname), connection) for field in _stored(row)]
