"""Redemption of discount codes, and campaign limits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from billing.models import Campaign, Discount
from billing.services.agreements.discounts import campaigns, coupons
from billing.services.agreements.discounts.campaigns import CampaignExists, RedemptionLimits
from billing.services.agreements.discounts.coupons import (
    CouponEnded,
    CouponOtherCurrency,
    CouponRedeemed,
    CouponUnknown,
)
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import NOW, START, close_and_get_invoice, verify_invoice
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering

pytestmark = pytest.mark.django_db
TEN = DiscountTerms("Autumn", percent_bp=1000)
DAY = timedelta(days=1)


def create_test_campaign(code: str = "AUTUMN-26", terms: DiscountTerms = TEN, **about: Any) -> Campaign:
    return campaigns.create_campaign(code, terms, RedemptionLimits(**about), actor=OPERATOR, now=NOW)


def test_a_redeemed_code_discounts_the_campaigns_number_of_months() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    create_test_campaign(months=3, most=1)
    given = coupons.redeem_coupon(tenant, " autumn-26 ", actor=OPERATOR, now=NOW)
    assert (given.first_month, given.last_month) == ("2026-11", "2027-01")
    final = close_and_get_invoice(tenant)
    assert final.total == 900
    verify_invoice(final)


def test_a_code_is_redeemed_once_per_tenant_and_up_to_its_limit() -> None:
    first, second, third = (create_customer()[0] for _ in range(3))
    campaign = create_test_campaign(most=2)
    coupons.redeem_coupon(first, "AUTUMN-26", actor=OPERATOR, now=NOW)
    with pytest.raises(CouponRedeemed, match="2026-11-21"):
        coupons.redeem_coupon(first, "AUTUMN-26", actor=OPERATOR, now=NOW)
    coupons.redeem_coupon(second, "AUTUMN-26", actor=OPERATOR, now=NOW)
    with pytest.raises(CouponEnded, match="maximum number of redemptions"):
        coupons.redeem_coupon(third, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaign.refresh_from_db()
    assert campaign.redeemed == 2
    with tenant_scope(first.pk):
        assert Discount.objects.count() == 1
        with pytest.raises(IntegrityError), transaction.atomic():
            Campaign.objects.update(redeemed=3)


@pytest.mark.parametrize(
    ("about", "later", "refusal"),
    [
        ({"since": NOW + DAY}, timedelta(0), CouponUnknown),
        ({"until": NOW + DAY}, DAY, CouponEnded),
    ],
)
def test_a_code_outside_its_validity_period_is_refused(
    about: dict[str, Any], later: timedelta, refusal: type[ProblemError]
) -> None:
    tenant, _ = create_customer()
    create_test_campaign(**about)
    with pytest.raises(refusal):
        coupons.redeem_coupon(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW + later)


def test_an_unknown_code_or_one_in_another_currency_is_refused() -> None:
    tenant, _ = create_customer()
    with pytest.raises(CouponUnknown):
        coupons.redeem_coupon(tenant, "NOBODY", actor=OPERATOR, now=NOW)
    campaign = create_test_campaign(terms=DiscountTerms("Autumn", minor=500, currency="USD"))
    with pytest.raises(CouponOtherCurrency, match="is for USD"):
        coupons.redeem_coupon(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaign.refresh_from_db()
    assert campaign.redeemed == 0


def test_an_ended_campaign_keeps_discounts_already_redeemed() -> None:
    tenant, _ = create_customer()
    campaign = create_test_campaign()
    coupons.redeem_coupon(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaigns.end_campaign(campaigns.get_campaign(campaign.pk), actor=OPERATOR, now=NOW + DAY)
    assert campaigns.end_campaign(campaign, actor=OPERATOR, now=NOW + 2 * DAY).until == NOW + DAY
    with pytest.raises(CouponEnded, match="expired on"):
        coupons.redeem_coupon(create_customer()[0], "AUTUMN-26", actor=OPERATOR, now=NOW + DAY)
    with tenant_scope(tenant.pk):
        assert Discount.objects.get().last_month is None
    with pytest.raises(ObjectNotFound):
        campaigns.get_campaign("cam_none")


@pytest.mark.parametrize(
    ("code", "about", "field"),
    [
        ("abc", {}, "code"),
        ("-ABCDEF", {}, "code"),
        ("ÄBCDEF", {}, "code"),
        ("ABCDEF", {"until": NOW}, "until"),
        ("ABCDEF", {"months": 0}, "months"),
        ("ABCDEF", {"months": 1201}, "months"),
        ("ABCDEF", {"months": 40_000}, "months"),
        ("ABCDEF", {"most": 1_000_001}, "most"),
        ("ABCDEF", {"until": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)}, "moment"),
        ("ABCDEF", {"since": datetime(9999, 12, 31, tzinfo=UTC)}, "moment"),
        ("ABCDEF", {"most": -1}, "most"),
    ],
)
def test_an_invalid_campaign_is_refused_at_its_field(code: str, about: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        create_test_campaign(code, **about)
    assert refused.value.field == field
    assert not Campaign.objects.exists()


def test_a_duplicate_campaign_code_is_refused() -> None:
    create_test_campaign()
    with pytest.raises(CampaignExists):
        create_test_campaign("autumn-26")
