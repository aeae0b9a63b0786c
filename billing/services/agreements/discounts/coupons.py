"""Redemption of coupon codes: once per tenant, limited in total, revealing nothing about others."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.models import Campaign, Discount
from billing.services.agreements.discounts import tenant_discounts
from billing.services.agreements.discounts.campaigns import normalize_code
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope

ASK_ISSUER = "Contact the person who gave you the code."


class CouponUnknown(ProblemError):
    code, status, title = "coupon-unknown", 409, "The code was not found"


class CouponEnded(ProblemError):
    code, status, title = "coupon-ended", 409, "This code can no longer be redeemed"


class CouponRedeemed(ProblemError):
    code, status, title = "coupon-redeemed", 409, "The code was already redeemed"


class CouponOtherCurrency(ProblemError):
    code, status, title = "coupon-currency-mismatch", 409, "The code is for another currency"


@transaction.atomic
def redeem_coupon(tenant: Tenant, code: str, *, actor: Actor, now: datetime) -> Discount:
    """Give a tenant the discount of a code, from its current month on.

    Raises CouponUnknown (also before the code is valid), CouponEnded if it is over or used up,
    CouponRedeemed for a second time, and CouponOtherCurrency. Then nothing is written.
    """
    rows = Campaign.objects.select_for_update().filter(code=normalize_code(code)[:40], since__lte=now)
    if (campaign := rows.first()) is None:
        raise CouponUnknown("The code does not exist or is not valid yet.", fix="Check the spelling of the code.")
    with tenant_scope(tenant.pk):
        before = Discount.objects.filter(tenant=tenant, campaign=campaign).first()
    if before:
        raise CouponRedeemed(
            f"{campaign.code} was redeemed on {before.given_at:%Y-%m-%d}. See your discounts.",
            fix="No action is needed.",
        )
    if campaign.until and campaign.until <= now:
        raise CouponEnded(f"{campaign.code} expired on {campaign.until:%Y-%m-%d %H:%M} UTC.", fix=ASK_ISSUER)
    if campaign.most is not None and campaign.redeemed >= campaign.most:
        raise CouponEnded(f"{campaign.code} has reached its maximum number of redemptions.", fix=ASK_ISSUER)
    if campaign.minor is not None and campaign.currency != tenant.currency:
        raise CouponOtherCurrency(
            f"{campaign.code} is for {campaign.currency}, but you are billed in {tenant.currency}.", fix=ASK_ISSUER
        )
    Campaign.objects.filter(pk=campaign.pk).update(redeemed=F("redeemed") + 1)
    return tenant_discounts.give_discount(
        tenant, _terms(campaign), months=campaign.months, campaign=campaign, actor=actor, now=now
    )


def _terms(campaign: Campaign) -> DiscountTerms:
    return DiscountTerms(
        name=campaign.name,
        percent_bp=campaign.percent_bp,
        minor=campaign.minor,
        currency=campaign.currency,
        offerings=tuple(campaign.offerings),
        price_classes=tuple(campaign.price_classes),
    )
