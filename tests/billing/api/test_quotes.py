"""POST /quotes: judged like a lease, and nothing is kept."""

from typing import Any

import pytest

from broker.models import Cluster, Gpu, Lease, Offering, Volume
from broker.services import inventory
from broker.services.inventory import Rack
from tenants.domain.roles import Role
from tenants.models import AuditEvent, QuotaKind
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, LONG_AGO, reprice
from tests.tenants.people import Api
from tests.world import MODEL, NOW, REGION, Home, alive, cards, home, offering

pytestmark = pytest.mark.django_db
PRICES = {"card": 289, "3g.40gb": 134, "2g.20gb": 88, "1g.10gb": 39}


@pytest.fixture
def kestrel(settings: Any) -> Home:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "billing.services.burn.gate")
    cards(2)
    for profile, cents in PRICES.items():
        for price_class, percent in (("on_demand", 100), ("spot", 46)):
            what = offering(profile, price_class=price_class)
            reprice(what, cents * EURO * percent // 10_000, since=LONG_AGO)
    return home("Kestrel")


def ask(owner: Home, what: Offering, **body: Any) -> Any:
    api = Api(owner.token(scopes=("offerings:read", "projects:read")))
    wanted = {"project": owner.project.pk, "offering": what.pk, "max_duration_s": 8 * 3600, **body}
    return api.ask("POST", "quotes", wanted)


def test_a_quote_names_price_limit_place_quota_and_alternatives(kestrel: Home) -> None:
    with alive():
        answer = ask(kestrel, offering("3g.40gb"), quantity=2)
    assert answer.status_code == 200, answer.content
    quote = answer.json()
    assert (quote["feasible"], quote["starts"], quote["refusal"]) == (True, "now", None)
    assert quote["price_per_hour"] == {"amount": "2.680000000", "currency": "EUR"}
    assert quote["at_most"] == {"amount": "21.440000", "currency": "EUR"}
    assert [place["size"] for place in quote["places"]] == [4, 4]
    assert {room["kind"]: room["free"] for room in quote["quotas"]} == {"units": 1_000_000}
    found = {each["kind"]: (each["label"], each["difference"]["amount"]) for each in quote["alternatives"]}
    assert found == {
        "spot": ("H100 3g.40gb", "-11.570000"),
        "cheaper": ("H100 2g.20gb", "-7.360000"),
        "faster": ("H100 whole card", "24.800000"),
    }


def test_a_quote_leaves_nothing_behind(kestrel: Home) -> None:
    kestrel.quota(QuotaKind.BURN, 10 * EURO)
    with alive() as life:
        assert ask(kestrel, offering("card")).json()["feasible"]
        assert not life.hints
    assert (kestrel.used(), kestrel.used(QuotaKind.BURN)) == (0, 0)
    with as_tenant(kestrel.tenant.pk):
        assert not Lease.objects.exists()
        assert not AuditEvent.objects.filter(action__startswith="lease").exists()


def test_what_a_gate_would_refuse_is_told_and_not_an_error(kestrel: Home) -> None:
    kestrel.quota(QuotaKind.BURN, EURO)
    with alive():
        quote = ask(kestrel, offering("card")).json()
    assert (quote["feasible"], quote["starts"]) == (False, "now")
    assert (quote["refusal"]["code"], bool(quote["refusal"]["fix"])) == ("quota-exceeded", True)


def test_a_suspended_tenant_is_told_the_price_and_what_stands_in_the_way(kestrel: Home) -> None:
    with as_tenant(kestrel.tenant.pk):
        tenants.suspend(kestrel.tenant, actor=SYSTEM, now=NOW, why="the owner left")
    with alive():
        answer = ask(kestrel, offering("card"))
    assert answer.status_code == 200, answer.content
    quote = answer.json()
    assert (quote["feasible"], quote["starts"], quote["at_most"]["amount"]) == (False, "now", "23.120000")
    assert quote["refusal"]["code"] == "tenant-suspended"
    assert "was suspended on" in quote["refusal"]["detail"]
    assert "operators" in quote["refusal"]["fix"]


def test_a_quote_with_a_volume_is_for_the_cluster_where_that_lies(kestrel: Home) -> None:
    """Elsewhere there is room, and a card that could be cut: neither is of any use to it."""
    inventory.add_simulated([Rack("north-2", REGION, MODEL, nodes=1, cards_per_node=1)], now=NOW)
    what = offering("3g.40gb")
    with alive() as life:
        volume = life.volume(kestrel)
        with as_tenant(kestrel.tenant.pk):
            there = Cluster.objects.get(name="north-2")
            Volume.objects.filter(pk=volume.pk).update(cluster=there, used_at=life.now)
        quote = ask(kestrel, what, volume=volume.pk).json()
        assert [place["cluster"] for place in quote["places"]] == ["north-2"]
        taken = life.lease(kestrel, offering("card"), volume=volume.pk)
        life.release(taken)
        life.run(10)
        with as_tenant(kestrel.tenant.pk):
            Gpu.objects.filter(node__cluster=there).update(health="unhealthy")
        full = ask(kestrel, what, volume=volume.pk).json()
        assert (full["starts"], full["places"], full["alternatives"]) == ("when_free", [], [])
        assert ask(kestrel, what).json()["starts"] == "now"


def test_a_full_fleet_means_when_free(kestrel: Home) -> None:
    with alive() as life:
        for _ in range(2):
            life.lease(kestrel, offering("card"))
        quote = ask(kestrel, offering("1g.10gb")).json()
    assert (quote["feasible"], quote["starts"], quote["places"], quote["alternatives"]) == (
        True,
        "when_free",
        [],
        [],
    )


def test_a_slice_no_card_here_could_hold_is_never_feasible(kestrel: Home) -> None:
    lonely = offering("1g.10gb")
    Offering.objects.filter(pk=lonely.pk).update(region="nowhere")
    with alive():
        quote = ask(kestrel, lonely).json()
    assert (quote["feasible"], quote["starts"]) == (False, "never")


def test_an_offering_without_a_price_is_quoted_without_one(kestrel: Home) -> None:
    with alive():
        quote = ask(kestrel, offering("4g.40gb")).json()
    assert (quote["price_per_hour"], quote["at_most"], quote["alternatives"]) == (None, None, [])
    assert quote["refusal"]["code"] == "no-price"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"offering": "off_nowhere"}, 404),
        ({"project": "prj_nowhere"}, 404),
        ({"max_duration_s": 1}, 400),
        ({"max_duration_s": 10**9}, 400),
        ({"quantity": 10**30}, 400),
        ({"quantity": 400}, 422),
        ({"name": "x" * 1000}, 400),
        ({"colour": "red"}, 400),
    ],
)
def test_what_cannot_be_quoted_is_refused(kestrel: Home, body: dict[str, Any], status: int) -> None:
    with alive():
        assert ask(kestrel, offering(), **body).status_code == status


def test_a_viewer_may_ask(kestrel: Home) -> None:
    with alive():
        api = Api(kestrel.token(Role.VIEWER))
        wanted = {"project": kestrel.project.pk, "offering": offering().pk, "max_duration_s": 3600}
        assert api.ask("POST", "quotes", wanted).status_code == 200
