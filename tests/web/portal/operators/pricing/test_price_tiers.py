"""Tiered prices are parsed, previewed and published on page and API."""

from datetime import timedelta

import pytest
from django.test import Client

from billing.models import PriceVersion
from billing.services.catalogue import price_list, price_tiers
from billing.services.catalogue.price_tiers import TierInput
from billing.services.rating import lease_rating
from ports import clock
from tenants.services.errors import InvalidValue
from tests.billing.agreements.agreed_terms import NOW, set_tiered_price
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.simulation import create_tenant
from tests.tenants.tenant_setup import ApiClient
from tests.web.keyed_requests import post_keyed

pytestmark = pytest.mark.django_db
SOON = NOW + timedelta(days=1)


def test_tiers_are_parsed_exactly_and_formatted_as_entered() -> None:
    said = [TierInput("0", "3", "100"), TierInput("100", "2.5", "500.5"), TierInput("500.5", "2")]
    found = price_tiers.parse_tiers("graduated", 3 * EURO, said)
    assert found == {
        "model": "graduated",
        "tier_from_s": [100 * HOUR, 500 * HOUR + 1800],
        "tier_nano": [2_500_000_000, 2 * EURO],
    }
    assert price_tiers.parse_tiers("graduated", 3 * EURO, [TierInput("100", "2.5"), TierInput("500.5", "2")]) == found
    version = PriceVersion(nano_per_hour=3 * EURO, **found)
    assert [(each["from"], each["until"], each["price"]) for each in price_tiers.describe_tiers(version)] == [
        ("0", "100", "3"),
        ("100", "500.5", "2.5"),
        ("500.5", None, "2"),
    ]
    package = price_tiers.parse_tiers("package", 3 * EURO, [TierInput("24", "60")])
    assert price_tiers.describe_tiers(PriceVersion(nano_per_hour=3 * EURO, **package)) == [
        {"from": "24", "until": None, "price": "60"}
    ]
    assert price_tiers.parse_tiers("flat", EURO, []) == {}
    assert price_tiers.describe_tiers(PriceVersion(nano_per_hour=EURO)) == []


@pytest.mark.parametrize(
    ("model", "said", "words"),
    [
        ("stairs", [], "does not exist"),
        ("flat", [TierInput("1", "1")], "A flat price has no tiers"),
        ("graduated", [], "1 to 20 tiers"),
        ("graduated", [TierInput("1", "1")] * 21, "1 to 20 tiers"),
        ("graduated", [TierInput("-1", "1")], "The hours are not a number"),
        ("graduated", [TierInput("1.0001", "1")], "The hours are not a number"),
        ("graduated", [TierInput("ten", "1")], "The hours are not a number"),
        ("graduated", [TierInput("1" * 30, "1")], "The hours are not a number"),
        ("graduated", [TierInput("10", "-1")], "not below nought"),
        ("graduated", [TierInput("10", "3.01")], "no tier costs more"),
        ("graduated", [TierInput("10", "2"), TierInput("5", "1")], "in order"),
        ("graduated", [TierInput("0", "2.5"), TierInput("5", "1")], "first tier is at the price itself"),
        ("graduated", [TierInput("0", "3", "5"), TierInput("6", "1")], "leave a gap"),
        ("graduated", [TierInput("0", "3", "7"), TierInput("6", "1")], "overlap"),
        ("graduated", [TierInput("5", "2", "6"), TierInput("6", "1")], "begin at 0"),
        ("package", [TierInput("10", "31")], "costs no more than its hours"),
    ],
)
def test_invalid_tiers_are_refused(model: str, said: list[TierInput], words: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        price_tiers.parse_tiers(model, 3 * EURO, said)
    assert words in refused.value.detail


def test_each_form_line_needs_a_threshold_and_a_price() -> None:
    assert price_tiers.parse_tier_lines(" 100  2.50 \n\n500 2") == [
        TierInput("100", "2.50"),
        TierInput("500", "2"),
    ]
    with pytest.raises(InvalidValue, match="two numbers"):
        price_tiers.parse_tier_lines("100")


def test_tiers_published_on_the_page_are_readable_by_tenants(operator: Client) -> None:
    offering = create_priced_offering(3 * EURO)
    path, kestrel = f"/ops/offerings/{offering.pk}/", create_tenant("Kestrel")
    typed = {"price": "3", "from": f"{SOON:%Y-%m-%dT%H:%M}", "model": "graduated", "tiers": "100 2.50\n500 2"}
    with clock.frozen_at(NOW):
        refused = operator.post(path, typed | {"tiers": "500 2\n100 2.50"})
        assert (refused.status_code, b"in order" in refused.content) == (400, True)
        assert operator.post(path, typed).status_code == 302
        assert "graduated: from 100 h 2.5, from 500 h 2" in operator.get(path).content.decode()
        found = ApiClient(kestrel.token()).get(f"/api/v1/price-versions?offering={offering.pk}").json()["items"]
    assert [(each["model"], len(each["tiers"])) for each in found] == [("graduated", 3), ("flat", 0)]
    assert found[0]["tiers"][1] == {
        "from_hours": "100",
        "until_hours": "500",
        "price_per_hour": {"amount": "2.500000000", "currency": "EUR"},
        "package_price": None,
    }


def test_publishing_tiers_over_the_api_is_idempotent(operator: Client) -> None:
    offering = create_priced_offering(3 * EURO)
    tenant, _ = create_customer()
    body = {
        "price_per_hour": "3",
        "since": SOON.isoformat(),
        "model": "package",
        "tiers": [{"from_hours": "24", "package_price": "60"}],
    }
    path = f"/api/v1/ops/offerings/{offering.pk}/price"
    with clock.frozen_at(NOW):
        first = post_keyed(operator, path, body)
        assert (first.status_code, first.json()["model"]) == (201, "package"), first.content
        assert post_keyed(operator, path, body).json()["id"] == first.json()["id"]
        own = post_keyed(operator, path, body | {"tenant": tenant.pk})
        (tier,) = own.json()["tiers"]
        assert (tier["from_hours"], tier["price_per_hour"]) == ("24", None)
        assert tier["package_price"] == {"amount": "60.000000000", "currency": "EUR"}
        again = post_keyed(operator, path, body | {"tenant": tenant.pk})
        assert again.json()["id"] == own.json()["id"]
        odd = post_keyed(operator, path, body | {"model": "volume"})
        assert (odd.status_code, odd.json()["code"]) == (400, "invalid")


def test_a_price_shows_the_usage_at_which_it_drops() -> None:
    offerings = [create_priced_offering(EURO), create_priced_offering(None), create_priced_offering(None)]
    set_tiered_price(offerings[1], "volume", [150 * 36], [0])
    set_tiered_price(offerings[2], "package", [24 * HOUR], [EURO])
    found = price_list.prices_at(NOW, currency="EUR", offerings=[each.pk for each in offerings])
    assert [found[each.pk].cheaper for each in offerings] == [
        "",
        "less from 1.5 h a month on",
        "less for 24 h at once",
    ]


def test_a_preview_counts_last_months_use_for_the_tiers(operator: Client) -> None:
    offering = create_priced_offering(EURO)
    for hours in (10, 30):
        add_ended_lease(create_customer()[1], offering, utc("2026-10-05 00:00:00"), hours * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with clock.frozen_at(NOW):
        found = operator.get(
            f"/api/v1/ops/offerings/{offering.pk}/preview?model=graduated&tiers=20 0.50", follow=True
        ).json()
        assert (found["was"]["amount"], found["would_be"]["amount"]) == ("40.000000", "35.000000")
        page = operator.get(f"/ops/offerings/{offering.pk}/?try=1&model=volume&tiers=20+0.50").content.decode()
    assert "would have been" in page
    assert "€25.00" in page
