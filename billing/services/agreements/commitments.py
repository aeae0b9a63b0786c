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
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering, OfferingState
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError

MAX_UNITS = 100_000


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
    later: earlier usage already had a price. It adds to other commitments to the offering.
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
    with agreement_rules.agreement_transaction(tenant, prepaid=prepaid, now=now):
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
    """Return a commitment, or raise ObjectNotFound. Must run as staff."""
    if found := Commitment.objects.filter(pk=pk).select_related("tenant", "offering").first():
        return found
    raise ObjectNotFound("The commitment was not found.", fix="Select it from the list of commitments.")


@transaction.atomic
def end_commitment(agreed: Commitment, *, at: datetime, actor: Actor, now: datetime) -> Commitment:
    """End a commitment at a future moment; until then it covers usage and is owed."""
    return agreement_rules.end_agreement(
        Commitment.objects.select_related("tenant", "offering"),
        agreed,
        at=whole_second(at),
        refusal="The end must be after the start, not in the past, and not after the current end.",
        record=lambda ended: _record_commitment("commitment.end", ended, actor, now),
        now=now,
    )


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
    label = f"{agreed.units} × {agreed.offering.label}"
    price = f"{format_fixed_point(agreed.nano_per_hour, 9)} {agreed.currency}/h"
    agreement_rules.record_agreement(what, agreed, label, actor=actor, now=now, price=price)
