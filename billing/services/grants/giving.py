"""Giving credit to a tenant, for a reason that it reads; the same twice is given once."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from billing.domain.money import HIGHEST, Money
from billing.models import Grant, GrantSource
from billing.services.ledger import posting
from broker.models import Offering
from broker.services.leases import evicting
from tenants.models import Project, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant

LAST = 1000  # the highest priority there is
USUAL = 100


class GivenOtherwise(Refused):
    code, status, title = "grant-given-otherwise", 409, "This was given already, otherwise"


@dataclass(frozen=True, slots=True)
class Terms:
    """How much, for what, and until when; empty scopes are everything, no end is never."""

    minor: int
    reason: str
    project: Project | None = None
    offering: Offering | None = None
    priority: int = USUAL
    expires_at: datetime | None = None
    source: GrantSource = GrantSource.OPERATOR


def give(tenant: Tenant, terms: Terms, *, idem: str, actor: Actor, now: datetime) -> Grant:
    """Give credit in the tenant's currency, or return what was given under this name before.

    Raises Invalid for an amount of nothing, an end that is over and a project of somebody else, GivenOtherwise where
    the name stands for other terms.
    """
    fields = _checked(tenant, terms, now)
    with as_tenant(tenant.pk), transaction.atomic():
        grant = Grant(tenant=tenant, idem=idem, given_at=now, given_by=actor.id, **fields)
        Grant.objects.bulk_create([grant], ignore_conflicts=True)  # somebody else may give the same just now
        given = Grant.objects.get(tenant=tenant, idem=idem)
        if given.pk != grant.pk:
            if any(getattr(given, name) != value for name, value in fields.items()):
                raise GivenOtherwise(
                    "Under this name another grant was given.",
                    fix="Look at the tenant's grants; it is among them.",
                )
            return given
        audit.record(
            "grant.give",
            actor=actor,
            now=now,
            tenant_id=tenant.pk,
            subject_id=given.pk,
            subject_label=f"{Money(given.minor, given.currency)} of credit",
            reason=given.reason,
            **({"project": given.project_id} if given.project_id else {}),
            **({"offering": given.offering_id} if given.offering_id else {}),
            **({"ends": given.expires_at.isoformat()} if given.expires_at else {}),
        )
        posting.granted([given.pk], now=now)
        return given


def _checked(tenant: Tenant, terms: Terms, now: datetime) -> dict[str, object]:
    if not 0 < terms.minor <= HIGHEST:
        raise Invalid(
            "amount", "Credit is more than nothing, and no more than there is.", fix="Give another amount."
        )
    if not 0 <= terms.priority <= LAST:
        raise Invalid(
            "priority", f"A priority is from 0 to {LAST}; the lowest is drawn first.", fix="Give another."
        )
    ends = terms.expires_at.replace(microsecond=0) if terms.expires_at else None
    if ends and ends <= now:
        raise Invalid("expires_at", "That moment is over.", fix="Give one that is yet to come, or none.")
    if terms.project and terms.project.tenant_id != tenant.pk:
        raise Invalid("project", "There is no such project of this tenant.", fix="Choose one of the list.")
    return {
        "currency": tenant.currency,
        "minor": terms.minor,
        "project_id": terms.project.pk if terms.project else None,
        "offering_id": terms.offering.pk if terms.offering else None,
        "priority": terms.priority,
        "expires_at": ends,
        "source": str(terms.source),
        "reason": evicting.reason(terms.reason),
    }
