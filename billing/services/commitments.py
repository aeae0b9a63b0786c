"""Units of an offering that a tenant pays for in every second, used or not, at a price agreed on for that.

Operators agree on them with a tenant and end them; they are never edited. What they cover is found when a month closes.
"""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import fixed_point
from billing.models import Commitment
from billing.services import agreeing, drafts, prices
from billing.services.prices import whole_second
from broker.domain.states import PriceClass
from broker.models import Offering, OfferingState
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_tenant

MOST_UNITS = 100_000


class CommitmentOverlaps(Refused):
    code, status, title = "commitment-overlaps", 409, "This tenant committed to this offering then"


class CommitmentPrepaid(Refused):
    code, status, title = "commitment-prepaid", 409, "This tenant pays beforehand"


@transaction.atomic
def agree(
    tenant: Tenant,
    offering: Offering,
    *,
    units: int,
    nano_per_hour: int,
    since: datetime,
    until: datetime | None,
    actor: Actor,
    now: datetime,
) -> Commitment:
    """Let a tenant pay for so many units in every second of [since, until), or from `since` on until it is ended.

    Both are rounded up to whole seconds, and it begins now or later: what was used had a price.
    """
    prices.check(tenant.currency, nano_per_hour)
    if nano_per_hour == 0:
        raise Invalid("price", "A commitment costs something.", fix="Give an amount such as 1.50.")
    if not 0 < units <= MOST_UNITS:
        raise Invalid(
            "units", f"A commitment is of 1 to {MOST_UNITS:,} units.", fix="Give a number between them."
        )
    _check_sold(offering)
    since, until = agreeing.span("commitment", since, until, now=now)
    prepaid = CommitmentPrepaid(
        "What is committed to and not used is owed when a month ends, and whoever pays beforehand owes nothing then.",
        fix="Let it pay by invoice first.",
    )
    overlaps = CommitmentOverlaps(
        f"One commitment to {offering.label} holds at a time, and another holds in that time.",
        fix="End that one first, or begin where it ends.",
    )
    with agreeing.agreeing(tenant, prepaid=prepaid, overlaps=overlaps, now=now):
        agreed = Commitment.objects.create(
            tenant=tenant,
            offering=offering,
            units=units,
            nano_per_hour=nano_per_hour,
            currency=tenant.currency,
            valid=DateTimeTZRange(since, until),
            agreed_by=actor.label,
            agreed_at=now,
        )
        _record("commitment.agree", agreed, actor, now)
    return agreed


def find(pk: str) -> Commitment:
    """Return a commitment, or raise Missing. Must run as staff."""
    if found := Commitment.objects.filter(pk=pk).select_related("tenant", "offering").first():
        return found
    raise Missing("There is no such commitment.", fix="Look for it in the list of commitments.")


@transaction.atomic
def end(agreed: Commitment, *, at: datetime, actor: Actor, now: datetime) -> Commitment:
    """Let a commitment end at a moment that is still to come; until then it covers, and is owed."""
    at = whole_second(at)
    with as_tenant(agreed.tenant_id):
        rows = Commitment.objects.select_for_update(of=("self",)).select_related("tenant", "offering")
        agreed = rows.get(pk=agreed.pk)
        if at < now or at <= agreed.valid.lower or (agreed.valid.upper and at > agreed.valid.upper):
            raise Invalid(
                "at",
                "A commitment ends after it began, not before now, and not later than it would have.",
                fix="Choose a moment between.",
            )
        agreed.valid = DateTimeTZRange(agreed.valid.lower, at)
        agreed.save(update_fields=["valid"])
        _record("commitment.end", agreed, actor, now)
        drafts.refresh(agreed.tenant, now=now)
    return agreed


def _check_sold(offering: Offering) -> None:
    """Refuse what nobody can count on: what is not sold, and what is taken back whenever others want it."""
    if offering.state != OfferingState.PUBLISHED:
        raise Invalid("offering", f"{offering.label} is not sold.", fix="Choose one that is published.")
    if offering.price_class == PriceClass.SPOT:
        raise Invalid(
            "offering",
            f"{offering.label} on spot terms may be taken back at any moment, so nobody commits to it.",
            fix="Choose it on demand.",
        )


def _record(what: str, agreed: Commitment, actor: Actor, now: datetime) -> None:
    audit.record(
        what,
        actor=actor,
        now=now,
        tenant_id=agreed.tenant_id,
        subject_id=agreed.pk,
        subject_label=f"{agreed.units} × {agreed.offering.label}",
        price=f"{fixed_point(agreed.nano_per_hour, 9)} {agreed.currency}/h",
        since=agreed.valid.lower.isoformat(),
        until=agreed.valid.upper.isoformat() if agreed.valid.upper else None,
    )
