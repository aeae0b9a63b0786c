"""A code gives what it says, once a tenant and so often in all, and says nothing about others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from billing.models import Campaign, Discount
from billing.services.discounts import campaigns, coupons
from billing.services.discounts.campaigns import CampaignExists, Round
from billing.services.discounts.coupons import (
    CouponEnded,
    CouponOtherCurrency,
    CouponRedeemed,
    CouponUnknown,
)
from billing.services.discounts.terms import Terms
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, customer, ran, sold
from tests.billing.months.terms import NOW, START, checked, closed

pytestmark = pytest.mark.django_db
TEN = Terms("Autumn", percent_bp=1000)
DAY = timedelta(days=1)


def made(code: str = "AUTUMN-26", terms: Terms = TEN, **about: Any) -> Campaign:
    return campaigns.make(code, terms, Round(**about), actor=OPERATOR, now=NOW)


def test_a_code_takes_its_part_off_for_its_months() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    made(months=3, most=1)
    given = coupons.redeem(tenant, " autumn-26 ", actor=OPERATOR, now=NOW)
    assert (given.first_month, given.last_month) == ("2026-11", "2027-01")
    final = closed(tenant)
    assert final.total == 900
    checked(final)


def test_a_code_is_redeemed_once_a_tenant_and_so_often_in_all() -> None:
    first, second, third = (customer()[0] for _ in range(3))
    campaign = made(most=2)
    coupons.redeem(first, "AUTUMN-26", actor=OPERATOR, now=NOW)
    with pytest.raises(CouponRedeemed, match="2026-11-21"):
        coupons.redeem(first, "AUTUMN-26", actor=OPERATOR, now=NOW)
    coupons.redeem(second, "AUTUMN-26", actor=OPERATOR, now=NOW)
    with pytest.raises(CouponEnded, match="as often as it may be"):
        coupons.redeem(third, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaign.refresh_from_db()
    assert campaign.redeemed == 2
    with as_tenant(first.pk):
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
def test_a_code_holds_between_two_moments(
    about: dict[str, Any], later: timedelta, refusal: type[Refused]
) -> None:
    tenant, _ = customer()
    made(**about)
    with pytest.raises(refusal):
        coupons.redeem(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW + later)


def test_a_code_that_nobody_made_or_of_another_currency_is_refused() -> None:
    tenant, _ = customer()
    with pytest.raises(CouponUnknown):
        coupons.redeem(tenant, "NOBODY", actor=OPERATOR, now=NOW)
    campaign = made(terms=Terms("Autumn", minor=500, currency="USD"))
    with pytest.raises(CouponOtherCurrency, match="of USD"):
        coupons.redeem(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaign.refresh_from_db()
    assert campaign.redeemed == 0


def test_a_campaign_is_ended_and_whoever_redeemed_it_keeps_it() -> None:
    tenant, _ = customer()
    campaign = made()
    coupons.redeem(tenant, "AUTUMN-26", actor=OPERATOR, now=NOW)
    campaigns.end(campaigns.find(campaign.pk), actor=OPERATOR, now=NOW + DAY)
    assert campaigns.end(campaign, actor=OPERATOR, now=NOW + 2 * DAY).until == NOW + DAY
    with pytest.raises(CouponEnded, match="could be redeemed until"):
        coupons.redeem(customer()[0], "AUTUMN-26", actor=OPERATOR, now=NOW + DAY)
    with as_tenant(tenant.pk):
        assert Discount.objects.get().last_month is None
    with pytest.raises(Missing):
        campaigns.find("cam_none")


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
def test_a_campaign_that_cannot_be_meant_is_refused(code: str, about: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        made(code, **about)
    assert refused.value.field == field
    assert not Campaign.objects.exists()


def test_a_code_is_made_once() -> None:
    made()
    with pytest.raises(CampaignExists):
        made("autumn-26")
