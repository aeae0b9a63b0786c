"""POST /quotes: judged like a lease, nothing is kept, and the price is promised to a lease that cites it."""

from datetime import timedelta
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


def test_what_no_card_publishes_is_never_feasible_and_the_rest_is_where_it_is_published(
    kestrel: Home,
) -> None:
    Gpu.objects.update(published={"1g.10gb": [5], "card": [0]})
    with alive():
        never, now = (ask(kestrel, offering(name)).json() for name in ("3g.40gb", "1g.10gb"))
    assert (never["feasible"], never["starts"], never["places"]) == (False, "never", [])
    assert (now["starts"], [place["start"] for place in now["places"]]) == ("now", [5])


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


def launch(owner: Home, what: Offering, **body: Any) -> Any:
    wanted = {
        "name": "job",
        "project": owner.project.pk,
        "offering": what.pk,
        "max_duration_s": 8 * 3600,
        **body,
    }
    return Api(owner.token()).ask("POST", "leases", wanted)


def test_the_quote_is_sent_along_and_the_lease_says_so(kestrel: Home) -> None:
    what = offering("card")
    with alive() as life:
        quote = ask(kestrel, what).json()
        assert quote["expires_at"] == "2026-11-21T09:10:00Z"
        assert quote["total_cap"] == quote["at_most"] == {"amount": "23.120000", "currency": "EUR"}
        reprice(what, 9 * EURO, since=life.now + timedelta(seconds=1))
        life.run(30)
        answer = launch(kestrel, what, quote=quote["quote"])
        assert answer.status_code == 202, answer.content
        lease = answer.json()
        assert lease["spec"]["quote"] == quote["id"]
        kept = Api(kestrel.token(Role.VIEWER)).ask("GET", f"quotes/{quote['id']}").json()
        assert (kept["lease"], kept["expires_at"], kept["cited_at"]) == (
            lease["id"],
            quote["expires_at"],
            "2026-11-21T09:00:30Z",
        )
        for figure in ("price_per_hour", "at_most", "total_cap"):
            assert kept[figure] == quote[figure]
        listed = Api(kestrel.token()).ask("GET", f"quotes?lease={lease['id']}").json()["items"]
        assert listed == [kept]
        assert launch(kestrel, what).json()["spec"]["quote"] is None


@pytest.mark.parametrize(
    ("later_s", "body", "status", "code"),
    [
        (601, {}, 410, "quote-expired"),
        (0, {"quantity": 2}, 409, "quote-mismatch"),
        (0, {"quote": "quo_x"}, 404, "not-found"),
        (0, {"quote": "x" * 1001}, 400, "invalid"),
    ],
)
def test_a_quote_that_does_not_hold_is_a_problem_with_a_fix(
    kestrel: Home, later_s: int, body: dict[str, Any], status: int, code: str
) -> None:
    what = offering("3g.40gb")
    with alive() as life:
        quote = ask(kestrel, what).json()
        life.run(later_s)
        answer = launch(kestrel, what, **{"quote": quote["quote"], **body})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["fix"]["text"]
    assert kestrel.used() == 0


def test_a_second_lease_on_one_quote_is_refused_and_a_repeated_request_is_not(kestrel: Home) -> None:
    what = offering("3g.40gb")
    api = Api(kestrel.token())
    with alive():
        quote = ask(kestrel, what).json()["quote"]
        wanted = {
            "name": "job",
            "project": kestrel.project.pk,
            "offering": what.pk,
            "max_duration_s": 3600,
            "quote": quote,
        }
        first = api.ask("POST", "leases", wanted, Idempotency_Key="once")
        again = api.ask("POST", "leases", wanted, Idempotency_Key="once")
        second = api.ask("POST", "leases", wanted, Idempotency_Key="twice")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert (second.status_code, second.json()["code"]) == (409, "quote-used")
    assert second.json()["fix"]["href"] == "/api/v1/quotes"


def test_a_dry_run_leaves_the_quote_unused(kestrel: Home) -> None:
    what = offering("3g.40gb")
    api = Api(kestrel.token())
    with alive():
        wanted = {"name": "job", "project": kestrel.project.pk, "offering": what.pk, "max_duration_s": 3600}
        wanted["quote"] = ask(kestrel, what).json()["quote"]
        assert api.ask("POST", "leases?dry_run=true", wanted).status_code == 200
        assert api.ask("POST", "leases", wanted).status_code == 202


def test_a_quote_cites_none(kestrel: Home) -> None:
    with alive():
        assert ask(kestrel, offering("card"), quote="quo_x").status_code == 400


def test_without_a_price_nothing_is_promised(kestrel: Home) -> None:
    with alive():
        quote = ask(kestrel, offering("4g.40gb")).json()
    assert [quote[name] for name in ("id", "quote", "expires_at", "total_cap")] == [None] * 4
