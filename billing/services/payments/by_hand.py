"""What operators settle by hand: a payment whose gateway is gone for good, or will never accept it, took nothing.

That something was taken is for the gateway alone to say: our books have no other proof of it.
"""

from datetime import datetime

import structlog
from django.db import transaction

from billing.models import Invoice, Payment, PaymentStatus
from billing.services.payments.collecting import CLAIM
from billing.services.payments.opening import asks_here, record
from broker.services.leases import evicting
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant

log = structlog.get_logger(__name__)
CODE = "nothing_taken"


class NotByHand(Refused):
    code, status, title = "not-by-hand", 409, "This payment cannot be settled by hand now"


@transaction.atomic
def nothing_was_taken(payment: Payment, *, why: str, actor: Actor, now: datetime) -> None:
    """Settle a payment as declined, on the word of an operator; its invoice is due again. Raises NotByHand, Invalid."""
    reason = evicting.reason(why)
    with as_tenant(payment.tenant_id):
        # The invoice first, as whoever opens or settles a payment does.
        invoice = Invoice.objects.select_for_update().get(pk=payment.invoice_id)
        found = Payment.objects.get(pk=payment.pk)
        _check(found, now)
        Payment.objects.filter(pk=found.pk).update(
            status=PaymentStatus.DECLINED,
            settled_at=now,
            due_at=None,
            claimed_until=None,
            stuck_at=None,
            trouble="",
            code=CODE,
            reason=f"Operators found that nothing was taken: {reason}",
        )
        log.warning("a payment was settled by hand", payment=found.pk, by=actor.label, why=reason)
        record("payment.nothing_taken", invoice, actor=actor, now=now, payment=found.pk,
               gateway=found.gateway, code=found.code, reason=reason)  # fmt: skip


def _check(payment: Payment, now: datetime) -> None:
    """Refuse while anybody may still bring the gateway's own answer: that counts for more than a person's."""
    if payment.status == PaymentStatus.STUCK and payment.stuck_at is not None:
        quiet_at = payment.stuck_at + CLAIM  # a worker that asked before it got stuck lives no longer
    elif payment.status == PaymentStatus.PENDING and not asks_here(payment):
        quiet_at = payment.claimed_until or now
    else:
        raise NotByHand(
            f"Payment {payment.pk} is {payment.status}, and waits for no person.",
            fix="Look at the list again: it may have been settled, or is being asked for.",
        )
    if now < quiet_at:
        raise NotByHand(
            f"Payment {payment.pk} may still get an answer from {payment.gateway}.",
            fix=f"Wait until {quiet_at:%H:%M:%S} UTC.",
        )
