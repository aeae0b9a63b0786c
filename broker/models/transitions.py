"""Lease transitions: the append-only rows that metering reads, and their log lines.

Append-only: one row for each state change, each chained to the row before it. Of two concurrent writers
the second changes neither the lease nor the ledger.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
from django.db import connection, models, transaction
from django.db.models.functions import Now

from broker.models.keys import ID_LENGTH

log = structlog.get_logger(__name__)
_level = logging.getLogger(__name__)
TICK_CAUSE = "metering tick"  # of a transition or size change that only splits an interval
# The ledger is only written if the row is unchanged. An extension adds no transition but always raises the
# duration, so the duration tells whether the terms the caller read still hold.
TRANSITION_SQL = """
WITH moved AS (
  UPDATE broker_lease SET version = version + 1, {assignments}
   WHERE id = %s AND state = %s AND seq = %s AND max_duration_s = %s RETURNING id
)
INSERT INTO broker_transition ({columns})
SELECT step.* FROM (VALUES {rows}) AS step ({columns}) WHERE EXISTS (SELECT FROM moved)
"""


class Transition(models.Model):
    """One state change of a lease.

    `at` is whole seconds. Billed intervals are the gaps between rows, so they cannot overlap.
    """

    pk = models.CompositePrimaryKey("lease_id", "seq")
    lease_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    tenant_id = models.CharField(max_length=ID_LENGTH)
    at = models.DateTimeField()
    prev_seq = models.PositiveIntegerField(null=True)
    prev_at = models.DateTimeField(null=True)
    before = models.CharField(max_length=12, blank=True, default="")
    after = models.CharField(max_length=12)
    reason = models.CharField(max_length=20, default="none")  # EndReason
    cause = models.CharField(max_length=200, blank=True, default="")  # one plain sentence for people
    offering_id = models.CharField(max_length=ID_LENGTH)
    project_id = models.CharField(max_length=ID_LENGTH)
    quantity = models.PositiveIntegerField()
    price_class = models.CharField(max_length=10)
    generation = models.PositiveIntegerField()
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")
    # Written by the database (migrations/sql/constraints.sql): the time of writing, and the order of the event stream.
    recorded_at = models.DateTimeField(db_default=Now())
    position = models.BigIntegerField(db_default=0)
    xid = models.BigIntegerField(db_default=0)

    def __str__(self) -> str:
        return f"{self.lease_id}#{self.seq} {self.after}"


def write_transition(
    lease: models.Model,
    changes: Mapping[str, object],
    steps: Sequence[models.Model],
    *,
    expected: tuple[str, str, int, int],
) -> bool:
    """Update a lease and append its transitions; return False if `expected` no longer matches."""
    columns, written = _columns(steps[0]), [value for step in steps for value in _values(step)]
    fields = {field.name: field for field in lease._meta.concrete_fields}
    assigned = [(fields[name], value) for name, value in changes.items()]
    row = "(" + ", ".join(["%s"] * len(columns)) + ")"
    statement = TRANSITION_SQL.format(
        assignments=", ".join(f"{field.column} = %s" for field, _ in assigned),
        columns=", ".join(columns),
        rows=", ".join([row] * len(steps)),
    )
    values: list[Any] = [field.get_db_prep_save(value, connection) for field, value in assigned]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, *expected, *written])
        return bool(cursor.rowcount == len(steps))


def _written_fields(row: models.Model) -> "list[models.Field[Any, Any]]":
    """Return the row's fields, without those that the database fills in."""
    return [field for field in row._meta.concrete_fields if not field.has_db_default()]


def _columns(row: models.Model) -> list[str]:
    return [str(field.column) for field in _written_fields(row)]


def _values(row: models.Model) -> list[Any]:
    return [field.get_db_prep_save(getattr(row, field.attname), connection) for field in _written_fields(row)]


def log_transition(lease_id: str, tenant_id: str, *, before: str, after: str, reason: str = "") -> None:
    """Log a transition once it is committed; one that is rolled back is never logged."""
    if _level.isEnabledFor(logging.INFO):
        ended = {"reason": reason} if reason else {}
        log_change = partial(log.info, lease_id=lease_id, tenant_id=tenant_id, before=before, after=after, **ended)
        transaction.on_commit(partial(log_change, "lease state changed"), robust=True)


@contextmanager
def transitions_not_logged() -> Iterator[None]:
    """Suppress transition logging inside the block, for generated history."""
    before = _level.level
    _level.setLevel(logging.WARNING)
    try:
        yield
    finally:
        _level.setLevel(before)
