"""Lease gate: new tenants pay in advance or have a card, and hold little together."""

from collections.abc import Callable
from datetime import datetime

from broker.models import Lease
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.services import new_tenant_limits
from tenants.services.errors import Fix, ProblemError


class CardOrPrepaymentRequired(ProblemError):
    """A new tenant has neither prepaid terms nor a payment card."""

    code, status, title = "card-or-prepayment-required", 402, "A payment card or prepayment is required"


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Refuse what a new tenant may not launch.

    It needs a card or prepayment, and holds little with other new tenants. Runs after the gate of quotas, which
    takes what the lease holds.
    """
    cursor = sql_statements.prepared_cursor()
    cursor.execute(load_sql("billing/funds/new_tenant_gate"), {"tenant": lease.tenant_id})

    def check() -> None:
        with cursor:
            is_new, prepaid, has_card = cursor.fetchone()
        if not is_new:
            return
        if not (prepaid or has_card):
            raise CardOrPrepaymentRequired(
                "A new tenant pays in advance or saves a payment card, until operators have released it.",
                fix=Fix("Save a payment card, or ask the operators.", "GET", "/api/v1/payment-cards"),
            )
        new_tenant_limits.check_held_units(lease.tenant_id)

    return check
