"""Commitments: units of an offering that a tenant pays for every second, used or not.

Operators agree on them with a tenant at a fixed price and can end them; they are never edited. What
they cover is computed when a month closes.
"""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import format_fixed_point
from billing.models import Commitment
from billing.services.agreements import agreement_rules
from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import whole_second
from billing.services.invoicing import drafts
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering, OfferingState
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import tenant_scope

MAX_UNITS = 100_000


class CommitmentOverlaps(ProblemError):
    code, status, title = "commitment-overlaps", 409, "A commitment to this offering already exists in this period"


class CommitmentPrepaid(ProblemError):
    code, status, title = "commitment-prepaid", 409, "The tenant is prepaid"


@transaction.atomic
def create_commitment(
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
    """Commit a tenant to so many units in every second of [since, until).

    Without `until` it holds until it is ended. Both are rounded up to whole seconds. It begins now or
    later: earlier usage already had a price.
    """
    price_list.check_price(tenant.currency, nano_per_hour)
    if nano_per_hour == 0:
        raise InvalidValue(
            "price", "The price of a commitment must be above zero.", fix="Enter an amount such as 1.50."
        )
    if not 0 < units <= MAX_UNITS:
        raise InvalidValue(
            "units", f"A commitment must have 1 to {MAX_UNITS:,} units.", fix="Enter a number in this range."
        )
    _check_committable(offering)
    since, until = agreement_rules.round_up_span("commitment", since, until, now=now)
    prepaid = CommitmentPrepaid(
        "Unused commitments are billed at the end of the month, which prepaid tenants cannot be.",
        fix="Change the tenant to payment by invoice first.",
    )
    overlaps = CommitmentOverlaps(
        f"Another commitment to {offering.label} is active in this period.",
        fix="End the other commitment first, or start after its end.",
    )
    with agreement_rules.agreement_transaction(tenant, prepaid=prepaid, overlaps=overlaps, now=now):
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
        _record_commitment("commitment.agree", agreed, actor, now)
    return agreed


def find_commitment(pk: str) -> Commitment:
    """Return a commitment, or raise Missing. Must run as staff."""
    if found := Commitment.objects.filter(pk=pk).select_related("tenant", "offering").first():
        return found
    raise ObjectNotFound("The commitment was not found.", fix="Select it from the list of commitments.")


@transaction.atomic
def end_commitment(agreed: Commitment, *, at: datetime, actor: Actor, now: datetime) -> Commitment:
    """End a commitment at a future moment; until then it covers usage and is owed."""
    at = whole_second(at)
    with tenant_scope(agreed.tenant_id):
        rows = Commitment.objects.select_for_update(of=("self",)).select_related("tenant", "offering")
        agreed = rows.get(pk=agreed.pk)
        if at < now or at <= agreed.valid.lower or (agreed.valid.upper and at > agreed.valid.upper):
            raise InvalidValue(
                "at",
                "The end must be after the start, not in the past, and not after the current end.",
                fix="Choose a time in this range.",
            )
        agreed.valid = DateTimeTZRange(agreed.valid.lower, at)
        agreed.save(update_fields=["valid"])
        _record_commitment("commitment.end", agreed, actor, now)
        drafts.refresh_drafts(agreed.tenant, now=now)
    return agreed


def _check_committable(offering: Offering) -> None:
    """Refuse offerings that are not sold, and spot, which can be taken back any time."""
    if offering.state != OfferingState.PUBLISHED:
        raise InvalidValue("offering", f"{offering.label} is not published.", fix="Select a published offering.")
    if offering.price_class == PriceClass.SPOT:
        raise InvalidValue(
            "offering",
            f"{offering.label} is a spot offering. Commitments are not available for spot.",
            fix="Select the on-demand offering.",
        )


def _record_commitment(what: str, agreed: Commitment, actor: Actor, now: datetime) -> None:
    audit.record_row(
        what,
        agreed,
        f"{agreed.units} × {agreed.offering.label}",
        actor=actor,
        now=now,
        price=f"{format_fixed_point(agreed.nano_per_hour, 9)} {agreed.currency}/h",
        since=agreed.valid.lower.isoformat(),
        until=agreed.valid.upper.isoformat() if agreed.valid.upper else None,
    )
