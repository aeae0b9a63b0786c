"""The least that a tenant agrees to spend in a month: agreed on by operators, ended, never edited."""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import HIGHEST, Money
from billing.models import Minimum
from billing.services import agreeing, drafts
from billing.services.prices import whole_second
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_tenant


class MinimumOverlaps(Refused):
    code, status, title = "minimum-overlaps", 409, "This tenant has a minimum then"


class MinimumPrepaid(Refused):
    code, status, title = "minimum-prepaid", 409, "This tenant pays beforehand"


@transaction.atomic
def agree(
    tenant: Tenant, *, minor: int, since: datetime, until: datetime | None, actor: Actor, now: datetime
) -> Minimum:
    """Let a tenant pay at least so much for every whole month from a moment on, until another or for good.

    Both are rounded up to whole seconds, and it begins now or later. Of the months that it begins and ends in, the
    part counts that it holds in them, by the second.
    """
    if not 0 < minor <= HIGHEST:
        raise Invalid("amount", "A minimum is more than nothing.", fix="Give an amount such as 500.00.")
    since, until = agreeing.span("minimum", since, until, now=now)
    prepaid = MinimumPrepaid(
        "Whoever pays beforehand owes nothing when a month ends.", fix="Let it pay by invoice first."
    )
    overlaps = MinimumOverlaps(
        "One minimum holds at a time, and another holds in that time.", fix="End that one first."
    )
    with agreeing.agreeing(tenant, prepaid=prepaid, overlaps=overlaps, now=now):
        agreed = Minimum.objects.create(
            tenant=tenant,
            minor=minor,
            currency=tenant.currency,
            valid=DateTimeTZRange(since, until),
            agreed_by=actor.label,
            agreed_at=now,
        )
        _record("minimum.agree", agreed, actor, now)
    return agreed


def find(pk: str) -> Minimum:
    """Return a minimum, or raise Missing. Must run as staff."""
    if found := Minimum.objects.filter(pk=pk).select_related("tenant").first():
        return found
    raise Missing("There is no such minimum.", fix="Look for it in the list of minimums.")


@transaction.atomic
def end(agreed: Minimum, *, at: datetime, actor: Actor, now: datetime) -> Minimum:
    """Let a minimum end at a moment that is still to come; what its months have of it until then counts."""
    at = whole_second(at)
    with as_tenant(agreed.tenant_id):
        agreed = Minimum.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=agreed.pk)
        if at <= agreed.valid.lower:
            raise Invalid(
                "at",
                f"It begins at {agreed.valid.lower:%Y-%m-%d %H:%M:%S} UTC, and ends after that.",
                fix="Choose a later moment: of a month, only the seconds count that it holds in it.",
            )
        if at < now or (agreed.valid.upper and at > agreed.valid.upper):
            raise Invalid(
                "at",
                "A minimum ends no sooner than now, and not later than it would have.",
                fix="Choose a moment between.",
            )
        agreed.valid = DateTimeTZRange(agreed.valid.lower, at)
        agreed.save(update_fields=["valid"])
        _record("minimum.end", agreed, actor, now)
        drafts.refresh(agreed.tenant, now=now)
    return agreed


def _record(what: str, agreed: Minimum, actor: Actor, now: datetime) -> None:
    audit.record(
        what,
        actor=actor,
        now=now,
        tenant_id=agreed.tenant_id,
        subject_id=agreed.pk,
        subject_label=f"{Money(agreed.minor, agreed.currency)} a month",
        since=agreed.valid.lower.isoformat(),
        until=agreed.valid.upper.isoformat() if agreed.valid.upper else None,
    )
