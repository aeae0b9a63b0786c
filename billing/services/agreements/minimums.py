"""Minimum monthly spend agreed with a tenant: created and ended by operators, never edited."""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import MAX_MINOR, Money
from billing.models import Minimum
from billing.services.agreements import agreement_rules
from billing.services.catalogue.price_list import whole_second
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError


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
    """Return a minimum, or raise ObjectNotFound. Must run as staff."""
    if found := Minimum.objects.filter(pk=pk).select_related("tenant").first():
        return found
    raise ObjectNotFound("The minimum spend was not found.", fix="Select it from the list of minimums.")


@transaction.atomic
def end_minimum(agreed: Minimum, *, at: datetime, actor: Actor, now: datetime) -> Minimum:
    """End a minimum at a future moment; the month's part until then counts."""
    at = whole_second(at)
    if at <= agreed.valid.lower:
        raise InvalidValue(
            "at",
            f"The minimum starts at {agreed.valid.lower:%Y-%m-%d %H:%M:%S} UTC. The end must be after that.",
            fix="Choose a later time. Partial months count by the second.",
        )
    return agreement_rules.end_agreement(
        Minimum.objects.select_related("tenant"),
        agreed,
        at=at,
        refusal="The end must not be in the past or after the current end.",
        record=lambda ended: _record_minimum("minimum.end", ended, actor, now),
        now=now,
    )


def _record_minimum(what: str, agreed: Minimum, actor: Actor, now: datetime) -> None:
    label = f"{Money(agreed.minor, agreed.currency)} a month"
    agreement_rules.record_agreement(what, agreed, label, actor=actor, now=now)
