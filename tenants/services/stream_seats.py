"""Seats of live streams: how many each tenant has open, over all events processes."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from ports.postgres import sql_statements

ALIVE = timedelta(seconds=15)  # how long a process counts that has not said that it is alive


def take_seat(process_id: str, tenant_id: str, *, held: Mapping[str, int], limit: int, now: datetime) -> bool:
    """Take one more seat of a tenant for a process; return whether there was one."""
    seats = held.get(tenant_id, 0) + 1
    wanted: dict[str, Any] = {"process": process_id, "tenant": tenant_id, "seats": seats, "limit": limit, "now": now}
    with transaction.atomic(), connection.cursor() as cursor:
        keep_seats(process_id, held, changed=(), now=now)
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('stream seats ' || %s, 0))", [tenant_id])
        cursor.execute(sql_statements.load_sql("tenants/stream_seats/take_seats"), wanted)
        return cursor.fetchone() is not None


def keep_seats(process_id: str, held: Mapping[str, int], *, changed: Collection[str], now: datetime) -> None:
    """Record that a process is alive, and its changed numbers of seats.

    All are written if the process counted as dead.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        was_dead = _say_alive(process_id, now=now)
        written = {tenant: held[tenant] for tenant in (held if was_dead else changed) if held.get(tenant)}
        left = sorted(set(changed) - written.keys())
        if left:
            cursor.execute("DELETE FROM stream_seats WHERE process_id = %s AND tenant_id = ANY(%s)", [process_id, left])
        if written:
            values: dict[str, Any] = {"process": process_id, "tenants": list(written), "seats": list(written.values())}
            cursor.execute(sql_statements.load_sql("tenants/stream_seats/write_seats"), values)


def forget_process(process_id: str) -> None:
    """Free all seats of a process that ends."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM stream_process WHERE id = %s", [process_id])


def delete_dead_processes(*, now: datetime) -> int:
    """Delete processes that are dead; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM stream_process WHERE alive_until < %s", [now - ALIVE])
        return int(cursor.rowcount)


def _say_alive(process_id: str, *, now: datetime) -> bool:
    """Let a process count for a while longer; return whether it was unknown before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO stream_process AS p (id, alive_until) VALUES (%s, %s)"
            " ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until RETURNING xmax = 0",
            [process_id, now + ALIVE],
        )
        return bool(cursor.fetchone()[0])
