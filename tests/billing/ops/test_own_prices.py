"""Operators agree prices with single tenants, on a page and over the API, after a look at last month."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import PriceVersion
from billing.services import burn, own_prices, quotes, rating
from broker.services.leases.request import Wanted
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests import world
from tests.billing.histories import EURO, OPERATOR, ran
from tests.world import Home, Life

pytestmark = pytest.mark.django_db


def own(home: Home) -> list[PriceVersion]:
    with as_tenant(home.tenant.pk):
        return list(PriceVersion.objects.filter(tenant_id=home.tenant.pk).order_by("valid"))


def read(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_price_is_agreed_shown_and_ended(life: Life, kestrel: Home, operator: Client) -> None:
    offering = world.offering("card")
    address = f"/ops/offerings/{offering.pk}/tenants/"
    assert "Everybody pays the list" in read(operator.get(address))
    assert "Everybody pays the list" in read(operator.get(f"/ops/offerings/{offering.pk}/"))
    answer = operator.post(address, {"tenant": kestrel.tenant.pk, "price": "1.25"})
    assert answer.status_code == 302
    (version,) = own(kestrel)
    assert (version.nano_per_hour, version.created_by) == (1_250_000_000, "operator@example.org")
    life.run(2)
    shown = read(operator.get(address))
    assert kestrel.tenant.name in shown
    assert "1 tenant has a price of its own now" in read(operator.get(f"/ops/offerings/{offering.pk}/"))
    assert "End it now" in read(operator.get(f"/ops/prices/{version.pk}/end/"))
    assert operator.post(f"/ops/prices/{version.pk}/end/").status_code == 302
    (version,) = own(kestrel)
    assert version.valid.upper == life.now
    assert operator.get("/ops/prices/1000000/end/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"price": "0"}, "would pay nothing"),
        ({"price": "-1"}, "nought or more"),
        ({"price": "cheap"}, "A price is a number"),
        ({"since": "yesterday"}, "A moment looks like"),
        ({"until": "2020-01-01T00:00"}, "ends after it begins"),
        ({"since": "2020-01-01T00:00"}, "begins now or later"),
        ({"tenant": "ten_x"}, "no such tenant"),
    ],
)
def test_what_cannot_be_meant_is_refused_on_the_page(
    kestrel: Home, operator: Client, typed: dict[str, str], words: str
) -> None:
    form = {"tenant": kestrel.tenant.pk, "price": "1.25", **typed}
    answer = operator.post(f"/ops/offerings/{world.offering('card').pk}/tenants/", form)
    assert answer.status_code == 400
    assert words in read(answer)
    assert own(kestrel) == []


def test_a_price_that_overlaps_another_is_refused_on_the_page(
    life: Life, kestrel: Home, operator: Client
) -> None:
    form = {"tenant": kestrel.tenant.pk, "price": "1.25", "since": "2027-01-01T00:00"}
    address = f"/ops/offerings/{world.offering('card').pk}/tenants/"
    assert operator.post(address, form).status_code == 302
    answer = operator.post(address, {**form, "price": "2"})
    assert (answer.status_code, "one price holds at a time" in read(answer)) == (409, True)
    assert len(own(kestrel)) == 1


def test_a_price_is_tried_on_the_last_month_of_one_tenant(
    life: Life, kestrel: Home, operator: Client
) -> None:
    offering = world.offering("card")
    last = (life.now.replace(day=1) - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    ran(kestrel.project, offering, last, 3600)
    rating.rate(now=life.now)
    address = f"/ops/offerings/{offering.pk}/tenants/"
    shown = read(operator.get(address, {"tenant": kestrel.tenant.pk, "try": "1"}))
    assert "Nothing was agreed" in shown
    assert "The list says" in shown
    nothing = read(operator.get(f"/ops/offerings/{world.offering('1g.10gb').pk}/tenants/",
                                {"tenant": kestrel.tenant.pk, "try": "1"}))  # fmt: skip
    assert "It was not used" in nothing
    assert operator.get(address, {"tenant": "ten_x", "try": "1"}).status_code == 400
    call = operator.get(f"/api/v1/ops/offerings/{offering.pk}/preview?tenant={kestrel.tenant.pk}&per_hour=1")
    assert call.json()["would_be"] == {"amount": "1.000000", "currency": "EUR"}
    assert operator.get(f"/api/v1/ops/offerings/{offering.pk}/preview?tenant=ten_x").status_code == 404
    assert own(kestrel) == []


def test_the_same_over_the_api(life: Life, kestrel: Home, operator: Client) -> None:
    offering = world.offering("card")
    address, wanted = f"/api/v1/ops/offerings/{offering.pk}/price", {"per_hour": "1.25"}
    for bad in ({"until": "2027-01-01T00:00:00Z"}, {"free": True}):
        assert operator.put(address, {**wanted, **bad}, "application/json").status_code == 400
    wanted["tenant"], wanted["since"] = kestrel.tenant.pk, "2026-12-01T00:00:00Z"
    first, again = (operator.put(address, wanted, "application/json").json() for _ in range(2))
    assert (first, first["tenant"], first["own"]) == (again, kestrel.tenant.pk, True)
    listed = operator.get("/api/v1/ops/price-versions", {"offering": offering.pk}).json()["items"]
    assert [each["tenant"] for each in listed] == [None]
    mine = operator.get("/api/v1/ops/price-versions", {"tenant": kestrel.tenant.pk}).json()["items"]
    assert [each["id"] for each in mine] == [first["id"]]
    end = f"/api/v1/ops/price-versions/{first['id']}/end"
    assert operator.put(end, {}, "application/json").json()["errors"][0]["field"] == "at"
    assert operator.put(end, {"at": None}, "application/json").status_code == 400, "it has not begun yet"
    done = operator.put(end, {"at": "2027-01-01T00:00:00Z"}, "application/json")
    assert done.json()["until"] == "2027-01-01T00:00:00Z"


def test_the_gate_takes_its_tenants_price_and_a_quote_promises_it(life: Life, kestrel: Home) -> None:
    offering = world.offering("1g.10gb")
    asked = {"tenant": kestrel.tenant, "offering": offering, "nano_per_hour": 7 * EURO, "since": life.now}
    version = own_prices.agree(**asked, actor=OPERATOR, now=life.now)
    with as_tenant(kestrel.tenant.pk):
        lease = life.ask(kestrel, offering)
        burn.gate(lease, now=life.now)()
        wanted = Wanted(offering_id=offering.pk, name="x", max_duration_s=3600)
        answer = quotes.quote(wanted, project=kestrel.project, actor=OPERATOR, now=life.now)
    assert lease.quota_uses[QuotaKind.BURN]["amount"] == 7 * EURO
    assert (answer.at_most_minor, answer.price and answer.price.version) == (700, version.pk)
