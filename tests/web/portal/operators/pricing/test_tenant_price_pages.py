"""Tenant-specific prices on a page and over the API, with preview."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import PriceVersion
from billing.services.catalogue import tenant_prices
from billing.services.quotes import burn_rate_gate, quote_answers
from billing.services.rating import lease_rating
from broker.services.leases.lease_requests import LeaseRequest
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests import simulation
from tests.billing.histories import EURO, OPERATOR, add_ended_lease
from tests.simulation import Simulation, TenantContext
from tests.web.keyed_requests import patch_json, post_keyed

pytestmark = pytest.mark.django_db


def own(home: TenantContext) -> list[PriceVersion]:
    with tenant_scope(home.tenant.pk):
        return list(PriceVersion.objects.filter(tenant_id=home.tenant.pk).order_by("valid"))


def read(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_tenant_price_is_created_shown_and_ended(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    offering = simulation.offering("whole-gpu")
    address = f"/ops/offerings/{offering.pk}/tenant-prices/"
    assert "All tenants pay the list price." in read(operator.get(address))
    assert "All tenants pay the list price now." in read(operator.get(f"/ops/offerings/{offering.pk}/"))
    answer = operator.post(address, {"tenant": kestrel.tenant.pk, "price": "1.25"})
    assert answer.status_code == 302
    (version,) = own(kestrel)
    assert (version.nano_per_hour, version.created_by) == (1_250_000_000, "operator@example.org")
    sim.run(2)
    shown = read(operator.get(address))
    assert kestrel.tenant.name in shown
    assert "1 tenant has a custom price now" in read(operator.get(f"/ops/offerings/{offering.pk}/"))
    assert "End custom price" in read(operator.get(f"/ops/tenant-prices/{version.pk}/end/"))
    assert operator.post(f"/ops/tenant-prices/{version.pk}/end/").status_code == 302
    (version,) = own(kestrel)
    assert version.valid.upper == sim.now
    assert operator.get("/ops/tenant-prices/1000000/end/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"price": "0"}, "makes the offering free for this tenant"),
        ({"price": "-1"}, "The price must be 0 to"),
        ({"price": "cheap"}, "The price is not a number"),
        ({"since": "yesterday"}, "The time is not valid"),
        ({"until": "2020-01-01T00:00"}, "The end must be after the start"),
        ({"since": "2020-01-01T00:00"}, "must start now or later"),
        ({"tenant": "ten_x"}, "The tenant was not found"),
    ],
)
def test_an_invalid_tenant_price_is_refused_on_the_page(
    kestrel: TenantContext, operator: Client, typed: dict[str, str], words: str
) -> None:
    form = {"tenant": kestrel.tenant.pk, "price": "1.25", **typed}
    answer = operator.post(f"/ops/offerings/{simulation.offering('whole-gpu').pk}/tenant-prices/", form)
    assert answer.status_code == 400
    assert words in read(answer)
    assert own(kestrel) == []


def test_a_price_that_overlaps_another_is_refused_on_the_page(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    form = {"tenant": kestrel.tenant.pk, "price": "1.25", "since": "2027-01-01T00:00"}
    address = f"/ops/offerings/{simulation.offering('whole-gpu').pk}/tenant-prices/"
    assert operator.post(address, form).status_code == 302
    answer = operator.post(address, {**form, "price": "2"})
    assert (answer.status_code, "already has a custom price" in read(answer)) == (409, True)
    assert len(own(kestrel)) == 1


def test_a_tenant_price_preview_uses_the_tenants_last_month(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    offering = simulation.offering("whole-gpu")
    last = (sim.now.replace(day=1) - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    add_ended_lease(kestrel.project, offering, last, 3600)
    lease_rating.rate_all_leases(now=sim.now)
    address = f"/ops/offerings/{offering.pk}/tenant-prices/"
    shown = read(operator.get(address, {"tenant": kestrel.tenant.pk, "try": "1"}))
    assert "This is a simulation; no price was set" in shown
    assert "List price:" in shown
    nothing = read(operator.get(f"/ops/offerings/{simulation.offering('1g.10gb').pk}/tenant-prices/",
                                {"tenant": kestrel.tenant.pk, "try": "1"}))  # fmt: skip
    assert "No usage in" in nothing
    assert operator.get(address, {"tenant": "ten_x", "try": "1"}).status_code == 400
    call = operator.get(f"/api/v1/ops/offerings/{offering.pk}/preview?tenant={kestrel.tenant.pk}&price_per_hour=1")
    assert call.json()["would_be"] == {"amount": "1.000000", "currency": "EUR"}
    assert operator.get(f"/api/v1/ops/offerings/{offering.pk}/preview?tenant=ten_x").status_code == 404
    assert own(kestrel) == []


def test_a_tenant_price_is_set_and_ended_over_the_api(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    offering = simulation.offering("whole-gpu")
    address, wanted = f"/api/v1/ops/offerings/{offering.pk}/price", {"price_per_hour": "1.25"}
    for bad in ({"until": "2027-01-01T00:00:00Z"}, {"free": True}):
        assert post_keyed(operator, address, {**wanted, **bad}).status_code == 400
    wanted["tenant"], wanted["since"] = kestrel.tenant.pk, "2026-12-01T00:00:00Z"
    first, again = (post_keyed(operator, address, wanted).json() for _ in range(2))
    assert (first, first["tenant"], first["own"]) == (again, kestrel.tenant.pk, True)
    listed = operator.get("/api/v1/ops/price-versions", {"offering": offering.pk}).json()["items"]
    assert [each["tenant"] for each in listed] == [None]
    mine = operator.get("/api/v1/ops/price-versions", {"tenant": kestrel.tenant.pk}).json()["items"]
    assert [each["id"] for each in mine] == [first["id"]]
    end = f"/api/v1/ops/price-versions/{first['id']}"
    assert patch_json(operator, end, {}).json()["errors"][0]["field"] == "until"
    assert patch_json(operator, end, {"until": None}).status_code == 400, "it has not begun yet"
    done = patch_json(operator, end, {"until": "2027-01-01T00:00:00Z"})
    assert done.json()["until"] == "2027-01-01T00:00:00Z"


def test_the_burn_rate_gate_and_quotes_use_the_tenant_price(sim: Simulation, kestrel: TenantContext) -> None:
    offering = simulation.offering("1g.10gb")
    values = {"tenant": kestrel.tenant, "offering": offering, "nano_per_hour": 7 * EURO, "since": sim.now}
    version = tenant_prices.set_tenant_price(**values, actor=OPERATOR, now=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        lease = sim.request_lease(kestrel, offering)
        burn_rate_gate.gate(lease, now=sim.now)()
        wanted = LeaseRequest(offering_id=offering.pk, name="x", max_duration_s=3600)
        answer = quote_answers.answer_quote(wanted, project=kestrel.project, actor=OPERATOR, now=sim.now)
    assert lease.quota_uses[QuotaKind.BURN]["amount"] == 7 * EURO
    assert (answer.at_most_minor, answer.price and answer.price.version) == (700, version.pk)
