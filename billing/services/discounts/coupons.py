"""Redeeming a code: once a tenant, so many in all, and nobody learns from it who else did."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.models import Campaign, Discount
from billing.services.discounts import giving
from billing.services.discounts.campaigns import code_of
from billing.services.discounts.terms import Terms
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant

ASK = "Ask whoever gave it to you."


class CouponUnknown(Refused):
    code, status, title = "coupon-unknown", 409, "There is no such code"


class CouponEnded(Refused):
    code, status, title = "coupon-ended", 409, "This code can no longer be redeemed"


class CouponRedeemed(Refused):
    code, status, title = "coupon-redeemed", 409, "You have redeemed this code"


class CouponOtherCurrency(Refused):
    code, status, title = "coupon-other-currency", 409, "This code is of another currency"


@transaction.atomic
def redeem(tenant: Tenant, code: str, *, actor: Actor, now: datetime) -> Discount:
    """Let a tenant have what a code gives, from its present month on.

    Raises CouponUnknown (also for one that does not hold yet), CouponEnded for one that is over or used up,
    CouponRedeemed for a second time, CouponOtherCurrency. Nothing is written then.
    """
    rows = Campaign.objects.select_for_update().filter(code=code_of(code)[:40], since__lte=now)
    if (campaign := rows.first()) is None:
        raise CouponUnknown(
            "Nobody gave out this code, or it does not hold yet.", fix="Look at it letter by letter."
        )
    with as_tenant(tenant.pk):
        before = Discount.objects.filter(tenant=tenant, campaign=campaign).first()
    if before:
        raise CouponRedeemed(
            f"{campaign.code} was redeemed on {before.given_at:%Y-%m-%d}; it is among your discounts.",
            fix="Nothing is left to do.",
        )
    if campaign.until and campaign.until <= now:
        raise CouponEnded(
            f"{campaign.code} could be redeemed until {campaign.until:%Y-%m-%d %H:%M} UTC.", fix=ASK
        )
    if campaign.most is not None and campaign.redeemed >= campaign.most:
        raise CouponEnded(f"{campaign.code} was redeemed as often as it may be.", fix=ASK)
    if campaign.minor is not None and campaign.currency != tenant.currency:
        raise CouponOtherCurrency(
            f"{campaign.code} is of {campaign.currency}, and you are billed in {tenant.currency}.", fix=ASK
        )
    Campaign.objects.filter(pk=campaign.pk).update(redeemed=F("redeemed") + 1)
    return giving.give(
        tenant, _terms(campaign), months=campaign.months, campaign=campaign, actor=actor, now=now
    )


def _terms(campaign: Campaign) -> Terms:
    return Terms(
        name=campaign.name,
        percent_bp=campaign.percent_bp,
        minor=campaign.minor,
        currency=campaign.currency,
        offerings=tuple(campaign.offerings),
        price_classes=tuple(campaign.price_classes),
    )
