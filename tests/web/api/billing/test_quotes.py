"""POST /quotes checks like a lease request and quotes a price."""

from datetime import timedelta
from typing import Any

import pytest

from broker.models import Cluster, Gpu, Lease, Offering, SpotReclaim, Volume
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from tenants.domain.roles import Role
from tenants.models import AuditEvent, QuotaKind
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.simulation import MODEL, NOW, REGION, TenantContext, create_gpus, create_tenant, offering, simulate
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
PRICES = {"whole-gpu": 289, "3g.40gb": 134, "2g.20gb": 88, "1g.10gb": 39}


@pytest.fixture
def kestrel(settings: Any) -> TenantContext:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "billing.services.quotes.burn_rate_gate.gate")
    create_gpus(2)
    for profile, cents in PRICES.items():
        for price_class, percent in (("on_demand", 100), ("spot", 46)):
            what = offering(profile, price_class=price_class)
            set_price(what, cents * EURO * percent // 10_000, since=LONG_AGO)
    return create_tenant("Kestrel")


def ask(owner: TenantContext, what: Offering, **body: Any) -> Any:
    api = ApiClient(owner.token(scopes=("offerings:read", "projects:read")))
    wanted = {"project": owner.project.pk, "offering": what.pk, "max_duration_s": 8 * 3600, **body}
    return api.send("POST", "quotes", wanted)


def test_a_quote_states_price_limit_placement_quota_and_alternatives(kestrel: TenantContext) -> None:
    with simulate():
        answer = ask(kestrel, offering("3g.40gb"), quantity=2)
    assert answer.status_code == 200, answer.content
    quote = answer.json()
    assert (quote["feasible"], quote["starts"], quote["refusal"]) == (True, "now", None)
    assert quote["total_price_per_hour"] == {"amount": "2.680000000", "currency": "EUR"}
    assert quote["hold"] == {"amount": "21.440000", "currency": "EUR"}
    assert [place["size"] for place in quote["placements"]] == [4, 4]
    assert {room["kind"]: room["remaining"] for room in quote["quotas"]} == {"units": 1_000_000}
    found = {each["kind"]: (each["label"], each["difference"]["amount"]) for each in quote["alternatives"]}
    assert found == {
        "spot": ("H100 SXM 80GB 3g.40gb", "-11.570000"),
        "cheaper": ("H100 SXM 80GB 2g.20gb", "-7.360000"),
        "faster": ("H100 SXM 80GB whole GPU", "24.800000"),
    }


def test_a_quote_stores_no_lease_message_or_audit_event(kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.BURN, 10 * EURO)
    with simulate() as sim:
        assert ask(kestrel, offering("whole-gpu")).json()["feasible"]
        assert not sim.messages
    assert (kestrel.quota_used(), kestrel.quota_used(QuotaKind.BURN)) == (0, 0)
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()
        assert not AuditEvent.objects.filter(action__startswith="lease").exists()


def test_a_quote_that_a_gate_would_refuse_carries_the_refusal(kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.BURN, EURO)
    with simulate():
        quote = ask(kestrel, offering("whole-gpu")).json()
    assert (quote["feasible"], quote["starts"]) == (False, "now")
    assert (quote["refusal"]["code"], bool(quote["refusal"]["fix"])) == ("quota-exceeded", True)


def test_a_quote_for_a_suspended_tenant_has_its_price_and_the_refusal(kestrel: TenantContext) -> None:
    with tenant_scope(kestrel.tenant.pk):
        tenants.suspend(kestrel.tenant, actor=SYSTEM, now=NOW, why="the owner left")
    with simulate():
        answer = ask(kestrel, offering("whole-gpu"))
    assert answer.status_code == 200, answer.content
    quote = answer.json()
    assert (quote["feasible"], quote["starts"], quote["hold"]["amount"]) == (False, "now", "23.120000")
    assert quote["refusal"]["code"] == "tenant-suspended"
    assert "was suspended on" in quote["refusal"]["detail"]
    assert "operators" in quote["refusal"]["fix"]


def test_a_quote_with_a_volume_only_considers_the_cluster_of_the_volume(kestrel: TenantContext) -> None:
    """There is room elsewhere, but none that helps."""
    hardware.add_simulated_racks([SimulatedRack("north-2", REGION, MODEL, nodes=1, gpus_per_node=1)], now=NOW)
    what = offering("3g.40gb")
    with simulate() as sim:
        volume = sim.create_volume(kestrel)
        with tenant_scope(kestrel.tenant.pk):
            there = Cluster.objects.get(name="north-2")
            Volume.objects.filter(pk=volume.pk).update(cluster=there, used_at=sim.now)
        quote = ask(kestrel, what, volume=volume.pk).json()
        assert [place["cluster"] for place in quote["placements"]] == ["north-2"]
        taken = sim.create_lease(kestrel, offering("whole-gpu"), volume=volume.pk)
        sim.release_lease(taken)
        sim.run(10)
        with tenant_scope(kestrel.tenant.pk):
            Gpu.objects.filter(node__cluster=there).update(health="unhealthy")
        full = ask(kestrel, what, volume=volume.pk).json()
        assert (full["starts"], full["placements"], full["alternatives"]) == ("when_free", [], [])
        assert ask(kestrel, what).json()["starts"] == "now"


def test_a_quote_on_a_full_fleet_starts_when_capacity_is_free(kestrel: TenantContext) -> None:
    with simulate() as sim:
        for _ in range(2):
            sim.create_lease(kestrel, offering("whole-gpu"))
        quote = ask(kestrel, offering("1g.10gb")).json()
    assert (quote["feasible"], quote["starts"], quote["placements"], quote["alternatives"]) == (
        True,
        "when_free",
        [],
        [],
    )


def test_an_offering_without_gpus_in_its_region_is_never_feasible(kestrel: TenantContext) -> None:
    lonely = offering("1g.10gb")
    Offering.objects.filter(pk=lonely.pk).update(region="nowhere")
    with simulate():
        quote = ask(kestrel, lonely).json()
    assert (quote["feasible"], quote["starts"]) == (False, "never")


def test_only_published_profiles_are_feasible_and_only_at_their_published_start(
    kestrel: TenantContext,
) -> None:
    Gpu.objects.update(published={"1g.10gb": [5], "whole-gpu": [0]})
    with simulate():
        never, now = (ask(kestrel, offering(name)).json() for name in ("3g.40gb", "1g.10gb"))
    assert (never["feasible"], never["starts"], never["placements"]) == (False, "never", [])
    assert (now["starts"], [place["start"] for place in now["placements"]]) == ("now", [5])


def test_an_offering_without_a_price_is_quoted_with_the_refusal_no_price(kestrel: TenantContext) -> None:
    with simulate():
        quote = ask(kestrel, offering("4g.40gb")).json()
    assert (quote["total_price_per_hour"], quote["hold"], quote["alternatives"]) == (None, None, [])
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
def test_an_invalid_quote_request_is_refused(kestrel: TenantContext, body: dict[str, Any], status: int) -> None:
    with simulate():
        assert ask(kestrel, offering(), **body).status_code == status


def test_a_viewer_can_request_a_quote(kestrel: TenantContext) -> None:
    with simulate():
        api = ApiClient(kestrel.token(Role.VIEWER))
        wanted = {"project": kestrel.project.pk, "offering": offering().pk, "max_duration_s": 3600}
        assert api.send("POST", "quotes", wanted).status_code == 200


def launch(owner: TenantContext, what: Offering, **body: Any) -> Any:
    wanted = {
        "name": "job",
        "project": owner.project.pk,
        "offering": what.pk,
        "max_duration_s": 8 * 3600,
        **body,
    }
    return ApiClient(owner.token()).send("POST", "leases", wanted)


def test_a_lease_launched_with_a_quote_refers_to_it_and_keeps_its_price(kestrel: TenantContext) -> None:
    what = offering("whole-gpu")
    with simulate() as sim:
        quote = ask(kestrel, what).json()
        assert quote["expires_at"] == "2026-11-21T09:10:00Z"
        assert quote["max_cost"] == quote["hold"] == {"amount": "23.120000", "currency": "EUR"}
        set_price(what, 9 * EURO, since=sim.now + timedelta(seconds=1))
        sim.run(30)
        answer = launch(kestrel, what, quote=quote["quote"])
        assert answer.status_code == 202, answer.content
        lease = answer.json()
        assert lease["spec"]["quote"] == quote["id"]
        kept = ApiClient(kestrel.token(Role.VIEWER)).send("GET", f"quotes/{quote['id']}").json()
        assert (kept["lease"], kept["expires_at"], kept["cited_at"]) == (
            lease["id"],
            quote["expires_at"],
            "2026-11-21T09:00:30Z",
        )
        for figure in ("total_price_per_hour", "hold", "max_cost"):
            assert kept[figure] == quote[figure]
        listed = ApiClient(kestrel.token()).send("GET", f"quotes?lease={lease['id']}").json()["items"]
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
def test_an_invalid_or_expired_quote_returns_a_problem_with_a_fix(
    kestrel: TenantContext, later_s: int, body: dict[str, Any], status: int, code: str
) -> None:
    what = offering("3g.40gb")
    with simulate() as sim:
        quote = ask(kestrel, what).json()
        sim.run(later_s)
        answer = launch(kestrel, what, **{"quote": quote["quote"], **body})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["fix"]["text"]
    assert kestrel.quota_used() == 0


def test_a_second_lease_on_one_quote_is_refused_but_a_repeated_request_succeeds(kestrel: TenantContext) -> None:
    what = offering("3g.40gb")
    api = ApiClient(kestrel.token())
    with simulate():
        quote = ask(kestrel, what).json()["quote"]
        wanted = {
            "name": "job",
            "project": kestrel.project.pk,
            "offering": what.pk,
            "max_duration_s": 3600,
            "quote": quote,
        }
        first = api.send("POST", "leases", wanted, Idempotency_Key="once")
        again = api.send("POST", "leases", wanted, Idempotency_Key="once")
        second = api.send("POST", "leases", wanted, Idempotency_Key="twice")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert (second.status_code, second.json()["code"]) == (409, "quote-used")
    assert second.json()["fix"]["href"] == "/api/v1/quotes"


def test_a_dry_run_leaves_the_quote_unused(kestrel: TenantContext) -> None:
    what = offering("3g.40gb")
    api = ApiClient(kestrel.token())
    with simulate():
        wanted = {"name": "job", "project": kestrel.project.pk, "offering": what.pk, "max_duration_s": 3600}
        wanted["quote"] = ask(kestrel, what).json()["quote"]
        assert api.send("POST", "leases?dry_run=true", wanted).status_code == 200
        assert api.send("POST", "leases", wanted).status_code == 202


def test_a_quote_request_cannot_cite_another_quote(kestrel: TenantContext) -> None:
    with simulate():
        assert ask(kestrel, offering("whole-gpu"), quote="quo_x").status_code == 400


def test_a_quote_without_a_price_has_no_token_and_no_expiry(kestrel: TenantContext) -> None:
    with simulate():
        quote = ask(kestrel, offering("4g.40gb")).json()
    assert [quote[name] for name in ("id", "quote", "expires_at", "max_cost")] == [None] * 4


def test_a_quote_names_the_resources_of_each_slice(kestrel: TenantContext) -> None:
    body = ask(kestrel, offering("1g.10gb"), quantity=2).json()
    assert (body["cpu_milli"], body["host_memory_mib"], body["scratch_mib"]) == (1500, 12_288, 25_600)


def test_a_spot_quote_states_terms_and_risk(kestrel: TenantContext) -> None:
    with simulate():
        quote = ask(kestrel, offering("whole-gpu", price_class="spot")).json()
        assert ask(kestrel, offering("whole-gpu")).json()["spot"] is None
    assert quote["spot"] == {
        "notice_s": 300,
        "min_runtime_s": 600,
        "lease_count": 0,
        "preempted_count": 0,
        "risk": "No spot lease ran here in the last 30 days.",
    }


def test_a_quote_states_after_which_notice_it_starts(kestrel: TenantContext) -> None:
    with simulate() as sim:
        for _ in range(2):
            sim.create_lease(kestrel, offering("whole-gpu", price_class="spot"), max_duration_s=8 * 3600)
        assert ask(kestrel, offering("whole-gpu")).json()["starts_after_notice_s"] is None
        sim.clock.at += timedelta(seconds=601)
        quote = ask(kestrel, offering("whole-gpu")).json()
        assert (quote["starts"], quote["starts_after_notice_s"]) == ("when_free", 300)
        assert ask(kestrel, offering("whole-gpu", price_class="spot")).json()["starts_after_notice_s"] is None
        assert not SpotReclaim.objects.exists()
