"""Manual settlement: an operator states that a payment or top-up took nothing.

The gateway's own answer takes precedence. If the gateway is set here, it is asked to make sure that
nothing is ever taken under that key: only then is the row declined, and if money was taken after
all, that is what is written. If the gateway is gone for good, the operator's word has to do. Nobody
can state manually that something was taken, because the ledger would have no other evidence of it.
"""

from datetime import datetime

import structlog
from django.db import transaction

from billing.models import PaymentStatus
from billing.services.payments.gateway_transactions import (
    CLAIM_DURATION,
    GatewayTransactions,
    TransactionRow,
    clean_text,
    decline_columns,
    declined_as_marked_failed,
)
from broker.services.leases.lifecycle import eviction
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope

log = structlog.get_logger(__name__)


class ManualSettlementRefused(ProblemError):
    code, status, title = "manual-settlement-not-allowed", 409, "It cannot be settled manually now"


@transaction.atomic
def settle_as_not_taken(
    transactions: GatewayTransactions[TransactionRow], row: TransactionRow, *, why: str, actor: Actor, now: datetime
) -> TransactionRow:
    """Record that a transaction took nothing, and return its row.

    It is declined, or pending while its gateway confirms that. Raises ManualSettlementRefused or InvalidValue.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(row.tenant_id):
        transactions.lock(row)
        found = transactions.rows().get(pk=row.pk)
        _check_settleable(transactions, found, now)
        log.warning("settled manually", **{transactions.name: found.pk}, by=actor.label, why=reason)
        detail = {"gateway": found.gateway, "code": found.code, "reason": reason}
        if transactions.uses_current_gateway(found):
            transactions.reopen(found, now=now, mark_failed_reason=clean_text(reason))
        else:
            columns = decline_columns(declined_as_marked_failed(reason), now)
            if not transactions.if_unchanged(found).update(mark_failed_reason=clean_text(reason), **columns):
                raise ManualSettlementRefused(
                    f"{transactions.title.capitalize()} {found.pk} has changed in the meantime.", fix="Reload the page."
                )
            found.refresh_from_db()
            transactions.on_decline(found, found.reason, now=now)
        transactions.record("mark_failed", found, actor=actor, now=now, **detail)
        return found


def _check_settleable(transactions: GatewayTransactions[TransactionRow], row: TransactionRow, now: datetime) -> None:
    """Refuse while the gateway's own answer may still arrive."""
    subject = f"{transactions.title.capitalize()} {row.pk}"
    if row.status == PaymentStatus.STUCK:
        quiet_at = row.stuck_at + CLAIM_DURATION if row.stuck_at else now  # the worker that asked has ended by then
    elif row.status == PaymentStatus.PENDING and not transactions.uses_current_gateway(row):
        quiet_at = row.claimed_until or now
    else:
        raise ManualSettlementRefused(
            f"{subject} is {row.status} and cannot be marked as failed.",
            fix="Reload the list. It may have been settled or is being retried.",
        )
    if now < quiet_at:
        raise ManualSettlementRefused(
            f"{row.gateway} may still respond to {subject}.", fix=f"Wait until {quiet_at:%H:%M:%S} UTC."
        )
