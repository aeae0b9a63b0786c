"""Tenants share a GPU only where the cluster allows it."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.test import Client

from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.models import Cluster, Offering
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import cluster_options, gpu_catalogue
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope
from tests import simulation
from tests.broker.services.clusters.kubeconfigs import KUBECONFIG
from tests.simulation import NOW, OPERATOR, Simulation, TenantContext

pytestmark = pytest.mark.django_db


def trail() -> list[tuple[str, dict[str, Any]]]:
    with staff_scope():
        events = AuditEvent.objects.filter(action="cluster.allow_sharing").order_by("at", "id")
        return [(event.actor_label, event.detail) for event in events]


@pytest.mark.parametrize("shares", [False, True])
def test_a_new_cluster_takes_the_sharing_setting_of_the_installation(db: None, settings: Any, shares: bool) -> None:
    settings.ALLOW_SHARED_GPUS, settings.CREDENTIAL_ENCRYPTION_KEYS = shares, Fernet.generate_key().decode()
    simulation.create_gpus(1)
    cluster_registration.register_cluster(
        name="east", region="eu", kubeconfig=KUBECONFIG, driver="hami", actor=OPERATOR, now=NOW
    )
    assert [each.allow_shared_gpus for each in Cluster.objects.all()] == [shares, shares]


def test_a_waiting_lease_gets_a_foreign_gpu_once_the_cluster_allows_it(sim: Simulation) -> None:
    simulation.create_gpus(1)
    quarter = simulation.soft_offering()
    first = sim.create_lease(simulation.create_tenant("Kestrel"), quarter)
    second = sim.request_lease(simulation.create_tenant("Swift"), quarter)
    sim.run(1)
    assert simulation.reload_lease(second).state == LeaseState.QUEUED
    cluster = Cluster.objects.get()
    assert cluster_options.set_cluster_option(
        cluster_options.SHARED_GPUS, cluster, True, why="all of one house", actor=OPERATOR, now=sim.now
    )
    sim.run(30)
    assert simulation.reload_lease(second).state == LeaseState.ACTIVE
    assert simulation.held_allocations(second)[0].gpu_id == simulation.held_allocations(first)[0].gpu_id
    assert not cluster_options.set_cluster_option(
        cluster_options.SHARED_GPUS, cluster, True, why="again", actor=OPERATOR, now=sim.now
    )
    values = {"before": False, "after": True, "reason": "all of one house"}
    assert trail() == [(OPERATOR.label, values)]


def test_disallowing_shared_gpus_refuses_new_neighbours_and_evicts_none(sim: Simulation) -> None:
    simulation.create_gpus(1)
    Cluster.objects.update(allow_shared_gpus=True)
    quarter = simulation.soft_offering()
    both = [sim.create_lease(simulation.create_tenant(name), quarter) for name in ("Kestrel", "Swift")]
    hints = len(sim.messages)
    assert cluster_options.set_cluster_option(
        cluster_options.SHARED_GPUS,
        Cluster.objects.get(),
        False,
        why="no longer",
        actor=OPERATOR,
        now=sim.now,
    )
    assert len(sim.messages) == hints
    third = sim.request_lease(simulation.create_tenant("Merlin"), quarter)
    sim.run(30)
    assert simulation.reload_lease(third).state == LeaseState.QUEUED
    assert {simulation.reload_lease(lease).state for lease in both} == {LeaseState.ACTIVE}


def test_operators_allow_and_disable_sharing_with_a_reason(kestrel: TenantContext, operator: Client) -> None:
    cluster = Cluster.objects.get()
    here = f"/ops/clusters/{cluster.pk}"
    for step, verb, words, shares in (
        ("allow-sharing", "Allow sharing", "Tenant sharing: off", True),
        ("forbid-sharing", "Disable sharing", "Tenant sharing: on", False),
    ):
        shown = operator.get("/ops/clusters/").content.decode()
        assert f"{here}/{step}/" in shown
        assert words in shown
        assert verb in operator.get(f"{here}/{step}/").content.decode()
        assert operator.post(f"{here}/{step}/", {"reason": " "}).status_code == 400
        assert operator.post(f"{here}/{step}/", {"reason": "as agreed"})["Location"] == "/ops/clusters/"
        assert Cluster.objects.get().allow_shared_gpus is shares
        assert operator.post(f"{here}/{step}/", {"reason": "as agreed"}).status_code == 302
    assert [detail["after"] for _, detail in trail()] == [True, False]
    assert operator.get("/ops/clusters/clu_nobody/allow-sharing/").status_code == 404


def shares_offered() -> set[tuple[str, str]]:
    rows = Offering.objects.filter(isolation__in=["soft", "none"])
    return set(rows.values_list("isolation", "profile"))


def test_derived_offerings_include_shares_only_for_a_driver_with_soft_sharing(kestrel: TenantContext) -> None:
    gpu_catalogue.derive_offerings(now=NOW)
    assert shares_offered() == set()
    Cluster.objects.update(driver="hami")
    assert gpu_catalogue.derive_offerings(now=NOW) == 4
    assert shares_offered() == {("soft", "half"), ("soft", "quarter")}
    Offering.objects.filter(isolation=Isolation.SOFT).delete()
    Cluster.objects.update(driver="device_plugin")
    assert gpu_catalogue.derive_offerings(now=NOW) == 0


def test_deriving_offerings_of_simulated_gpus_creates_draft_shares(kestrel: TenantContext, operator: Client) -> None:
    operator.post("/ops/offerings/derive/")
    assert shares_offered() == {(how, part) for how in ("soft", "none") for part in ("half", "quarter")}
    drafted = Offering.objects.filter(isolation__in=["soft", "none"])
    assert set(drafted.values_list("state", flat=True)) == {"draft"}
    quarter = drafted.get(isolation="soft", profile="quarter", price_class="on_demand")
    assert (quarter.memory_gb, quarter.milli_units) == (20, 1750)
