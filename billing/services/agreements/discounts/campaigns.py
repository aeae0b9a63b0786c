"""Campaigns: coupon codes of operators, limited in number of tenants and in time."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from billing.models import Campaign
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.agreements.discounts.tenant_discounts import MAX_MONTHS, format_discount
from billing.services.catalogue.price_list import whole_second
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError

CODE_FORMAT = re.compile(r"[A-Z0-9][A-Z0-9-]{4,38}[A-Z0-9]", re.ASCII)
MAX_REDEMPTIONS = 1_000_000


class CampaignExists(ProblemError):
    code, status, title = "campaign-exists", 409, "The code already exists"


@dataclass(frozen=True, slots=True)
class RedemptionLimits:
    """Limits of a code: when and how often it can be redeemed, for how long."""

    since: datetime | None = None
    until: datetime | None = None
    months: int | None = None
    most: int | None = None


def normalize_code(text: str) -> str:
    """Return a code in its stored form, trimmed and in capitals."""
    return text.strip().upper()


@transaction.atomic
def create_campaign(
    code: str, terms: DiscountTerms, about: RedemptionLimits, *, actor: Actor, now: datetime
) -> Campaign:
    """Create a code. Raises InvalidValue, and CampaignExists for a code that ever existed."""
    code, since = normalize_code(code), whole_second(about.since) if about.since else now
    until = whole_second(about.until) if about.until else None
    if not CODE_FORMAT.fullmatch(code):
        raise InvalidValue(
            "code",
            "A code must have 6 to 40 letters, digits and dashes, without a dash at the start or end.",
            fix="Enter another code.",
        )
    if until and until <= max(since, now):
        raise InvalidValue(
            "until", "The end must be after the start and in the future.", fix="Choose a later end, or none."
        )
    for name, number, most in (("months", about.months, MAX_MONTHS), ("most", about.most, MAX_REDEMPTIONS)):
        if number is not None and not 0 < number <= most:
            raise InvalidValue(
                name, f"The number must be 1 to {most:,}.", fix="Enter a number, or leave it empty for no limit."
            )
    made = Campaign(
        code=code,
        since=since,
        until=until,
        months=about.months,
        most=about.most,
        created_by=actor.label,
        created_at=now,
        **terms.fields(),
    )
    Campaign.objects.bulk_create([made], ignore_conflicts=True)  # a concurrent request may create it, too
    if Campaign.objects.get(code=code).pk != made.pk:
        raise CampaignExists(f"The code {code} already exists.", fix="Choose another code. Codes cannot be reused.")
    _record("campaign.create", made, actor, now)
    return made


def get_campaign(pk: str) -> Campaign:
    """Return a campaign, or raise ObjectNotFound."""
    if found := Campaign.objects.filter(pk=pk).first():
        return found
    raise ObjectNotFound("The campaign was not found.", fix="Select it from the list of campaigns.")


@transaction.atomic
def end_campaign(campaign: Campaign, *, at: datetime | None = None, actor: Actor, now: datetime) -> Campaign:
    """End the redemption of a code at a time, by default now.

    Tenants that redeemed it keep their discount. An earlier end stays as it is.
    """
    campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
    at = max(whole_second(at) if at else now, now, campaign.since + timedelta(seconds=1))
    if campaign.until is None or campaign.until > at:
        campaign.until = at
        campaign.save(update_fields=["until"])
        _record("campaign.end", campaign, actor, now)
    return campaign


def _record(what: str, campaign: Campaign, actor: Actor, now: datetime) -> None:
    audit.record(
        what,
        campaign,
        f"{campaign.code}, {format_discount(campaign)}",
        actor=actor,
        now=now,
        until=campaign.until.isoformat() if campaign.until else None,
    )
