"""Spot leases over the API: terms, risk and notice."""

from datetime import timedelta

from broker.models import Lease
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_tenant, offering, reload_lease
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def test_a_spot_offering_states_its_terms_and_what_happened_to_others(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    spot = offering("whole-gpu", price_class="spot")
    read = api.get(f"offerings/{spot.pk}").body["spot"]
    assert read == {
        "notice_s": 300,
        "min_runtime_s": 600,
        "lease_count": 0,
        "preempted_count": 0,
        "risk": "No spot lease ran here in the last 30 days.",
    }
    for _ in range(2):
        sim.create_lease(kestrel, spot, max_duration_s=8 * 3600)
    sim.clock.at += timedelta(seconds=601)
    sim.request_lease(create_tenant("Swift"), offering("whole-gpu"))
    sim.run_with_sweeps(330)
    read = api.get(f"offerings/{spot.pk}").body["spot"]
    assert (read["lease_count"], read["preempted_count"]) == (2, 1)
    assert read["risk"] == "1 of 2 spot leases was preempted in the last 30 days."
    assert api.get(f"offerings/{offering('whole-gpu').pk}").body["spot"] is None


def test_a_lease_states_its_terms_and_its_notice(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    spot = offering("whole-gpu", price_class="spot")
    wishes = {"requeue_when_preempted": True, "checkpoint_command": "save"}
    made = api.post("leases", wanted(kestrel, offering=spot.pk, quantity=2, max_duration_s=8 * 3600, **wishes)).body
    spec = made["spec"]
    assert {name: spec[name] for name in wishes} == wishes
    assert (spec["spot_notice_s"], spec["spot_min_runtime_s"]) == (300, 600)
    sim.run(30)
    sim.clock.at += timedelta(seconds=601)
    other = api.post("leases", wanted(kestrel, offering=offering("whole-gpu").pk)).body
    assert (other["spec"]["spot_notice_s"], other["status"]["reclaim_at"]) == (None, None)
    sim.run()
    with tenant_scope(kestrel.tenant.pk):
        lease = Lease.objects.get(pk=made["id"])
    read = api.get(f"leases/{made['id']}").body
    assert read["status"]["reclaim_at"] == f"{reload_lease(lease).reclaim_at:%Y-%m-%dT%H:%M:%SZ}"
    assert api.get(f"leases/{other['id']}").body["status"]["pending_reason"].startswith("Starts after ")
    steps = api.get(f"leases/{made['id']}/transitions").body["items"]
    assert steps[-1]["cause"].startswith("notice given at ")
    assert steps[-1]["cause"].endswith("; it is then queued again")


def test_wishes_of_spot_leases_are_refused_for_other_offerings(api: Api, kestrel: TenantContext) -> None:
    for wish in ({"requeue_when_preempted": True}, {"checkpoint_command": "save"}):
        refused = api.post("leases", wanted(kestrel, **wish))
        assert (refused.status_code, refused.body["errors"][0]["field"]) == (400, next(iter(wish)))
