"""Grants as operators give them, in tests."""

import itertools
from datetime import datetime

from billing.models import Grant, Invoice
from billing.services.grants import ending, giving, purse
from billing.services.grants.giving import Terms
from billing.services.grants.purse import Stands
from broker.models import Offering
from tenants.models import Project, Tenant
from tenants.services.walls import as_tenant
from tests.billing.histories import OPERATOR, at

GIVEN = at("2026-10-02 00:00:00")
WHY = "for the slow week"
_names = itertools.count(1)


def give(
    tenant: Tenant,
    cents: int,
    *,
    project: Project | None = None,
    offering: Offering | None = None,
    priority: int = giving.USUAL,
    expires_at: datetime | None = None,
    idem: str = "",
    now: datetime = GIVEN,
) -> Grant:
    terms = Terms(cents, WHY, project, offering, priority, expires_at)
    return giving.give(tenant, terms, idem=idem or f"name {next(_names)}", actor=OPERATOR, now=now)


def drawn(invoice: Invoice) -> dict[str, int]:
    """Return what each grant paid of an invoice."""
    found: dict[str, int] = {}
    with as_tenant(invoice.tenant_id):
        for draw in invoice.grant_draws.all():
            found[draw.grant_id] = found.get(draw.grant_id, 0) + draw.minor
    return found


def left(grant: Grant) -> int:
    with as_tenant(grant.tenant_id):
        return purse.left(grant.tenant_id).get(grant.pk, 0)


def stands(grant: Grant, now: datetime) -> Stands:
    with as_tenant(grant.tenant_id):
        (found,) = purse.standing([Grant.objects.select_related("lapse").get(pk=grant.pk)], now=now)
    return found


def lapse(now: datetime) -> int:
    return ending.lapse_due(now=now)
