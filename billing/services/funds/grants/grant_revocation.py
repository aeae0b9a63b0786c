"""Take back what is left of a grant.

It pays nothing from now on; what it paid stays paid.
"""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money
from billing.models import Grant, GrantExpiry
from billing.services.funds.grants import grant_balances
from billing.services.ledger import posting
from broker.services.leases.lifecycle import eviction
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class NotRevocable(ProblemError):
    code, status, title = "grant-not-revocable", 409, "The credit cannot be taken back now"


@transaction.atomic
def revoke_grant(grant: Grant, *, available: int | None, why: str, actor: Actor, now: datetime) -> Grant:
    """Take back the unused rest of a grant; repeating it changes nothing.

    `available` is what of a prepaid tenant's funds no lease holds; None for a tenant that pays by invoice. Raises
    NotRevocable if leases hold a part of the rest.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(grant.tenant_id):
        grant_balances.lock_grants(grant.tenant_id)
        if GrantExpiry.objects.filter(grant=grant).exists():
            return grant
        left = grant_balances.remaining_by_grant(grant.tenant_id, [grant.pk]).get(grant.pk, 0)
        if available is not None and available < left:
            raise NotRevocable(
                f"Running leases hold {Money(left - available, grant.currency)} of this credit.",
                fix="End leases of the tenant first, or let it top up its wallet.",
            )
        GrantExpiry.objects.create(
            tenant_id=grant.tenant_id, grant=grant, minor=left, at=now, revoked_by=actor.label, reason=reason
        )
        audit.record(
            "grant.revoke",
            grant,
            f"{Money(left, grant.currency)} of credit",
            actor=actor,
            now=now,
            amount=left,
            currency=grant.currency,
            reason=reason,
        )
        posting.post_grant_expiries([grant.pk], now=now)
        return grant
