"""Minimum monthly spend agreed with a tenant: created and ended by operators, never edited."""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import MAX_MINOR, Money
from billing.models import Minimum
from billing.services.agreements import agreement_rules
from billing.services.catalogue.price_list import whole_second
from billing.services.invoicing import drafts
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import tenant_scope


class MinimumOverlaps(ProblemError):
    code, status, title = "minimum-overlaps", 409, "A minimum spend already exists in this period"


class MinimumPrepaid(ProblemError):
    code, status, title = "minimum-prepaid", 409, "The tenant is prepaid"


@transaction.atomic
def create_minimum(
    tenant: Tenant, *, minor: int, since: datetime, until: datetime | None, actor: Actor, now: datetime
) -> Minimum:
    """Agree on a minimum spend for every month from a moment on.

    It holds until the next one, or for good. Both moments are rounded up to whole seconds, and it
    begins now or later. The months in which it begins and ends are prorated by the second.
    """
    if not 0 < minor <= MAX_MINOR:
        raise InvalidValue("amount", "The minimum spend must be above zero.", fix="Enter an amount such as 500.00.")
    since, until = agreement_rules.round_up_span("minimum", since, until, now=now)
    prepaid = MinimumPrepaid(
        "A shortfall is billed at the end of the month, which prepaid tenants cannot be.",
        fix="Change the tenant to payment by invoice first.",
    )
    overlaps = MinimumOverlaps("Another minimum spend is active in this period.", fix="End the other minimum first.")
    with agreement_rules.agreement_transaction(tenant, prepaid=prepaid, overlaps=overlaps, now=now):
        agreed = Minimum.objects.create(
            tenant=tenant,
            minor=minor,
            currency=tenant.currency,
            valid=DateTimeTZRange(since, until),
            agreed_by=actor.label,
            agreed_at=now,
        )
        _record_minimum("minimum.agree", agreed, actor, now)
    return agreed


def find_minimum(pk: str) -> Minimum:
    """Return a minimum, or raise Missing. Must run as staff."""
    if found := Minimum.objects.filter(pk=pk).select_related("tenant").first():
        return found
    raise ObjectNotFound("The minimum spend was not found.", fix="Select it from the list of minimums.")


@transaction.atomic
def end_minimum(agreed: Minimum, *, at: datetime, actor: Actor, now: datetime) -> Minimum:
    """End a minimum at a future moment; the month's part until then counts."""
    at = whole_second(at)
    with tenant_scope(agreed.tenant_id):
        agreed = Minimum.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=agreed.pk)
        if at <= agreed.valid.lower:
            raise InvalidValue(
                "at",
                f"The minimum starts at {agreed.valid.lower:%Y-%m-%d %H:%M:%S} UTC. The end must be after that.",
                fix="Choose a later time. Partial months count by the second.",
            )
        if at < now or (agreed.valid.upper and at > agreed.valid.upper):
            raise InvalidValue(
                "at",
                "The end must not be in the past or after the current end.",
                fix="Choose a time in this range.",
            )
        agreed.valid = DateTimeTZRange(agreed.valid.lower, at)
        agreed.save(update_fields=["valid"])
        _record_minimum("minimum.end", agreed, actor, now)
        drafts.refresh_drafts(agreed.tenant, now=now)
    return agreed


def _record_minimum(what: str, agreed: Minimum, actor: Actor, now: datetime) -> None:
    audit.record_row(
        what,
        agreed,
        f"{Money(agreed.minor, agreed.currency)} a month",
        actor=actor,
        now=now,
        since=agreed.valid.lower.isoformat(),
        until=agreed.valid.upper.isoformat() if agreed.valid.upper else None,
    )
