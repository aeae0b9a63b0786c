"""Grant credit to a tenant, with a stated reason and an idempotency key."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from billing.domain.money import MAX_MINOR, Money
from billing.models import Grant, GrantSource
from billing.services.ledger import posting
from broker.models import Offering
from broker.services.leases.lifecycle import eviction
from tenants.models import Project, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope

MAX_PRIORITY = 1000  # the highest priority there is
DEFAULT_PRIORITY = 100


class GrantKeyReused(ProblemError):
    code, status, title = "grant-key-conflict", 409, "A different grant with this name exists"


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """Terms of a grant; no scope means everything, no expiry means never."""

    minor: int
    reason: str
    project: Project | None = None
    offering: Offering | None = None
    priority: int = DEFAULT_PRIORITY
    expires_at: datetime | None = None
    source: GrantSource = GrantSource.OPERATOR


def give_grant(tenant: Tenant, terms: GrantTerms, *, idem: str, actor: Actor, now: datetime) -> Grant:
    """Grant credit in the tenant's currency, or return the grant given under this key.

    Raises InvalidValue for an amount of zero, an expiry in the past or another tenant's project,
    GrantKeyReused if the key stands for other terms.
    """
    fields = _check_terms(tenant, terms, now)
    with tenant_scope(tenant.pk), transaction.atomic():
        grant = Grant(tenant=tenant, idem=idem, given_at=now, given_by=actor.id, **fields)
        Grant.objects.bulk_create([grant], ignore_conflicts=True)  # somebody may give the same now
        given = Grant.objects.get(tenant=tenant, idem=idem)
        if given.pk != grant.pk:
            if any(getattr(given, name) != value for name, value in fields.items()):
                raise GrantKeyReused("Another grant already uses this name.", fix="Check the tenant's grants.")
            return given
        audit.record(
            "grant.give",
            given,
            f"{Money(given.minor, given.currency)} of credit",
            actor=actor,
            now=now,
            reason=given.reason,
            **({"project": given.project_id} if given.project_id else {}),
            **({"offering": given.offering_id} if given.offering_id else {}),
            **({"ends": given.expires_at.isoformat()} if given.expires_at else {}),
        )
        posting.post_grants([given.pk], now=now)
        return given


def _check_terms(tenant: Tenant, terms: GrantTerms, now: datetime) -> dict[str, object]:
    if not 0 < terms.minor <= MAX_MINOR:
        raise InvalidValue(
            "amount", "The amount must be above zero and below the maximum.", fix="Enter another amount."
        )
    if not 0 <= terms.priority <= MAX_PRIORITY:
        raise InvalidValue(
            "priority",
            f"The priority must be 0 to {MAX_PRIORITY}. The lowest is used first.",
            fix="Enter another priority.",
        )
    ends = terms.expires_at.replace(microsecond=0) if terms.expires_at else None
    if ends and ends <= now:
        raise InvalidValue("expires_at", "The expiry is in the past.", fix="Choose a future date, or leave it empty.")
    if terms.project and terms.project.tenant_id != tenant.pk:
        raise InvalidValue("project", "The project was not found in this tenant.", fix="Select one from the list.")
    return {
        "currency": tenant.currency,
        "minor": terms.minor,
        "project_id": terms.project.pk if terms.project else None,
        "offering_id": terms.offering.pk if terms.offering else None,
        "priority": terms.priority,
        "expires_at": ends,
        "source": str(terms.source),
        "reason": eviction.clean_reason(terms.reason),
    }
