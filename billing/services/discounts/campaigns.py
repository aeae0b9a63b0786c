"""Campaigns: codes that operators make, for so many tenants, between two moments."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from billing.models import Campaign
from billing.services.discounts.giving import LONGEST, size
from billing.services.discounts.terms import Terms
from billing.services.prices import whole_second
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing, Refused

CODE = re.compile(r"[A-Z0-9][A-Z0-9-]{4,38}[A-Z0-9]", re.ASCII)
MOST = 1_000_000


class CampaignExists(Refused):
    code, status, title = "campaign-exists", 409, "This code is taken"


@dataclass(frozen=True, slots=True)
class Round:
    """When a code may be redeemed, by how many tenants at most, and how many months it then lasts."""

    since: datetime | None = None
    until: datetime | None = None
    months: int | None = None
    most: int | None = None


def code_of(text: str) -> str:
    """Return a code as it is kept: in capitals, however it was typed."""
    return text.strip().upper()


@transaction.atomic
def make(code: str, terms: Terms, about: Round, *, actor: Actor, now: datetime) -> Campaign:
    """Make a code. Raises Invalid for what cannot be meant, CampaignExists for a code that was ever made."""
    code, since = code_of(code), whole_second(about.since) if about.since else now
    until = whole_second(about.until) if about.until else None
    if not CODE.fullmatch(code):
        raise Invalid(
            "code",
            "A code has 6 to 40 letters, digits and dashes, a dash neither first nor last.",
            fix="Type another.",
        )
    if until and until <= max(since, now):
        raise Invalid(
            "until", "It ends after it begins, and later than now.", fix="Choose a later end, or none."
        )
    for name, number, most in (("months", about.months, LONGEST), ("most", about.most, MOST)):
        if number is not None and not 0 < number <= most:
            raise Invalid(
                name,
                f"That is one at least and {most:,} at most.",
                fix="Give a number, or none for without end.",
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
    Campaign.objects.bulk_create([made], ignore_conflicts=True)  # somebody else may make it just now
    if Campaign.objects.get(code=code).pk != made.pk:
        raise CampaignExists(
            f"The code {code} was made before.",
            fix="Choose another: whoever knows an old one must not get a new one.",
        )
    _record("campaign.make", made, actor, now)
    return made


def find(pk: str) -> Campaign:
    """Return a campaign, or raise Missing."""
    if found := Campaign.objects.filter(pk=pk).first():
        return found
    raise Missing("There is no such campaign.", fix="Look for it in the list of campaigns.")


@transaction.atomic
def end(campaign: Campaign, *, at: datetime | None = None, actor: Actor, now: datetime) -> Campaign:
    """Let nobody redeem a code from a moment on, at once where none is named; whoever did keeps what it got.

    Where it ends earlier already, nothing changes.
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
        actor=actor,
        now=now,
        subject_id=campaign.pk,
        subject_label=f"{campaign.code}, {size(campaign)}",
        until=campaign.until.isoformat() if campaign.until else None,
    )
