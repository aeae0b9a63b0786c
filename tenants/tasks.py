"""Periodic tasks of tenants; each reads the clock and calls one service."""

from ports import clock
from ports.outbox import task
from tenants.services import cleanup


@task("tenants.delete_expired_rows")
def delete_expired_rows() -> None:
    """Delete old idempotency records and ended sessions."""
    cleanup.delete_expired(now=clock.now())
