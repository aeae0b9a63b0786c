"""Setup of grants, and their remaining amounts."""

import itertools
from datetime import datetime

from billing.models import Grant, Invoice
from billing.services.funds.grants import grant_balances, grant_expiry, new_grants
from billing.services.funds.grants.grant_balances import GrantBalance
from billing.services.funds.grants.new_grants import GrantTerms
from broker.models import Offering
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import OPERATOR, utc

GIVEN = utc("2026-10-02 00:00:00")
WHY = "for the slow week"
_names = itertools.count(1)


def create_grant(
    tenant: Tenant,
    cents: int,
    *,
    project: Project | None = None,
    offering: Offering | None = None,
    priority: int = new_grants.DEFAULT_PRIORITY,
    expires_at: datetime | None = None,
    idem: str = "",
    now: datetime = GIVEN,
) -> Grant:
    terms = GrantTerms(cents, WHY, project, offering, priority, expires_at)
    return new_grants.give_grant(tenant, terms, idem=idem or f"name {next(_names)}", actor=OPERATOR, now=now)


def amounts_drawn(invoice: Invoice) -> dict[str, int]:
    """Return what each grant paid of an invoice."""
    found: dict[str, int] = {}
    with tenant_scope(invoice.tenant_id):
        for draw in invoice.grant_draws.all():
            found[draw.grant_id] = found.get(draw.grant_id, 0) + draw.minor
    return found


def remaining_amount(grant: Grant) -> int:
    with tenant_scope(grant.tenant_id):
        return grant_balances.remaining_by_grant(grant.tenant_id).get(grant.pk, 0)


def grant_state(grant: Grant, now: datetime) -> GrantBalance:
    with tenant_scope(grant.tenant_id):
        (found,) = grant_balances.grant_balances([Grant.objects.select_related("lapse").get(pk=grant.pk)], now=now)
    return found


def expire_grants(now: datetime) -> int:
    return grant_expiry.expire_due_grants(now=now)
