"""Registration, inventory and ingress settings of clusters."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.domain.geometry.published_profiles import published_profiles
from broker.domain.lifecycle.states import Isolation
from broker.models import Allocation, Cluster, ClusterCredential, Gpu, Lease, Node, Offering, OfferingState
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
)
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from broker.services.inventory.inventory_conflicts import QUARANTINED
from broker.services.queue import queue_scheduling
from ports import crypto, ids
from tenants.models.audit import AuditEvent
from tenants.services.errors import InvalidValue, StaleVersion
from tenants.services.rls import staff_scope, tenant_scope
from tests.broker.services.clusters.kubeconfigs import KUBECONFIG
from tests.simulation import MODEL, NOW, OPERATOR, Simulation, create_tenant, held_allocations, offering, reload_lease

WHOLE = (DiscoveredSlice(0, 8, "whole-gpu"),)


def gpu(index: int = 0, **changes: Any) -> DiscoveredGpu:
    found = {"uuid": f"n1/{index}", "model": MODEL, "isolation": Isolation.DEVICE, "cuts": WHOLE, **changes}
    return DiscoveredGpu(index=index, **found)


def update_inventory_of_n1(cluster: Cluster, *gpus: DiscoveredGpu, problems: tuple[str, ...] = ()) -> list[str]:
    return cluster_registration.update_inventory(cluster, [DiscoveredNode("n1", gpus, problems)], now=NOW)


def test_new_credentials_replace_the_old_ones(cluster: Cluster) -> None:
    way = {**KUBECONFIG, "clusters": [{"name": "cluster", "cluster": {"server": "https://two.example"}}]}
    cluster_registration.renew_credentials(cluster, way, actor=OPERATOR, now=NOW)
    cluster.refresh_from_db()
    assert cluster.address == "https://two.example"
    assert b"two.example" in crypto.decrypt(bytes(ClusterCredential.objects.get().sealed))


def test_a_cluster_cannot_be_registered_without_an_encryption_key(cluster: Cluster, settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    with pytest.raises(crypto.CredentialKeyError):
        cluster_registration.register_cluster(
            name="west", region="eu", kubeconfig=KUBECONFIG, driver="dra", actor=OPERATOR, now=NOW
        )
    assert not Cluster.objects.filter(name="west").exists()


def test_reported_nodes_and_gpus_are_added_to_the_inventory_once(cluster: Cluster) -> None:
    for _ in range(2):
        assert update_inventory_of_n1(cluster, gpu(0), gpu(1, cuts=(), uuid="GPU-real")) == []
    node = Node.objects.get()
    fixed, dynamic = Gpu.objects.order_by("index")
    assert (fixed.uuid, fixed.layout_policy) == (f"{node.pk}/0", "fixed")
    assert fixed.fixed_layout == [{"profile": "whole-gpu", "start": 0, "size": 8, "isolation": "device"}]
    assert (dynamic.uuid, dynamic.layout_policy, dynamic.version) == ("GPU-real", "dynamic", 1)


def test_a_custom_resource_name_is_stored_with_the_slices_of_its_gpu(cluster: Cluster) -> None:
    """Labels of sharing are read long before a lease is rendered."""
    halves = (DiscoveredSlice(0, 4, "half"), DiscoveredSlice(4, 4, "half"))
    shared = gpu(0, isolation=Isolation.SOFT, cuts=halves, resource_name="nvidia.com/gpu")
    assert update_inventory_of_n1(cluster, shared) == []
    assert [slot["resource_name"] for slot in Gpu.objects.get().fixed_layout] == ["nvidia.com/gpu"] * 2
    update_inventory_of_n1(cluster, gpu(0, isolation=Isolation.SOFT, cuts=halves))
    assert "resource_name" not in Gpu.objects.get().fixed_layout[0]


def test_published_profiles_are_stored_until_all_are_published_again(cluster: Cluster) -> None:
    found = published_profiles({"1g.10gb": [0, 1]})
    for publishes, kept in ((found, {"1g.10gb": [0, 1]}), (published_profiles({}), {}), (None, None)):
        for _ in range(2):
            assert update_inventory_of_n1(cluster, gpu(0, cuts=(), uuid="GPU-real", published=publishes)) == []
        assert Gpu.objects.get().published == kept
    assert Gpu.objects.get().version == 3
    assert Gpu.objects.filter(published__isnull=True).exists()


def test_gpus_added_together_get_ids_in_node_and_index_order(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among equal GPUs the one with the first id is chosen."""
    monkeypatch.setattr(ids.clock, "milliseconds", lambda: 1_800_000_000_000)
    found = [DiscoveredNode(f"n{node}", tuple(gpu(index, uuid="") for index in range(8)), ()) for node in range(4)]
    cluster_registration.update_inventory(cluster, found, now=NOW)
    assert [node.name for node in Node.objects.order_by("id")] == ["n0", "n1", "n2", "n3"]
    places = Gpu.objects.order_by("id").values_list("node__name", "index")
    assert list(places) == [(f"n{node}", index) for node in range(4) for index in range(8)]


def test_a_repartitioned_gpu_gets_its_new_fixed_layout(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu())
    update_inventory_of_n1(cluster, gpu(cuts=(DiscoveredSlice(0, 4, "3g.40gb"),), isolation=Isolation.HARDWARE))
    changed = Gpu.objects.get()
    assert (changed.fixed_layout[0]["profile"], changed.version) == ("3g.40gb", 2)


ONES = tuple(DiscoveredSlice(start, 1, "1g.10gb") for start in range(7))


def partitioned_gpu(index: int, cuts: tuple[DiscoveredSlice, ...] = ONES, **changes: Any) -> DiscoveredGpu:
    return gpu(index, cuts=cuts, isolation=Isolation.HARDWARE, **changes)


@pytest.fixture
def leased(cluster: Cluster, sim: Simulation) -> Lease:
    """A lease on the last slice of the first of two GPUs."""
    update_inventory_of_n1(cluster, partitioned_gpu(0), partitioned_gpu(1))
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    kestrel = create_tenant("Kestrel")
    leases = [sim.request_lease(kestrel, offering("1g.10gb")) for _ in range(7)]
    assert queue_scheduling.run_queue((MODEL, "eu"), now=sim.now) == 7
    last = next(lease for lease in leases if held_allocations(lease)[0].placement.lower == 6)
    with tenant_scope(kestrel.tenant.pk):
        Allocation.objects.exclude(lease=last).update(released_at=sim.now)
    return last


@pytest.mark.parametrize(
    "reported",
    [
        (partitioned_gpu(0, ONES[:4]), partitioned_gpu(1, ONES[:3])),
        (partitioned_gpu(0, (DiscoveredSlice(0, 4, "3g.40gb"), DiscoveredSlice(4, 4, "3g.40gb"))), partitioned_gpu(1)),
        (gpu(0), partitioned_gpu(1)),
        (partitioned_gpu(0, model="A100-80GB"), partitioned_gpu(1)),
    ],
)
def test_a_report_that_contradicts_a_lease_quarantines_its_gpus(
    cluster: Cluster, leased: Lease, reported: tuple[DiscoveredGpu, ...]
) -> None:
    before = list(Gpu.objects.order_by("index").values_list("gpu_model_id", "fixed_layout"))
    problems = update_inventory_of_n1(cluster, *reported)
    assert len(problems) == 1
    assert "GPU 0 has no 1g.10gb at 6" in problems[0]
    assert list(Gpu.objects.order_by("index").values_list("gpu_model_id", "fixed_layout")) == before
    assert not Gpu.objects.sellable().exists()
    assert set(Gpu.objects.values_list("health_reason", flat=True)) == {QUARANTINED}
    assert reload_lease(leased).state in ("provisioning", "active")
    assert update_inventory_of_n1(cluster, *reported) == problems


def test_a_quarantined_node_is_sold_again_once_its_report_matches_its_leases(cluster: Cluster, leased: Lease) -> None:
    update_inventory_of_n1(cluster, partitioned_gpu(0, ONES[:4]), partitioned_gpu(1))
    assert not Gpu.objects.sellable().exists()
    update_inventory_of_n1(cluster, partitioned_gpu(0), partitioned_gpu(1))
    assert Gpu.objects.sellable().count() == 2


def test_a_quarantined_node_is_sold_with_its_new_layout_after_its_leases_end(cluster: Cluster, leased: Lease) -> None:
    update_inventory_of_n1(cluster, partitioned_gpu(0, ONES[:4]), partitioned_gpu(1))
    with tenant_scope(leased.tenant_id):
        Allocation.objects.update(released_at=NOW + timedelta(hours=1))
    assert update_inventory_of_n1(cluster, partitioned_gpu(0, ONES[:4]), partitioned_gpu(1)) == []
    assert Gpu.objects.sellable().count() == 2
    assert len(Gpu.objects.get(index=0).fixed_layout) == 4


def test_a_new_layout_that_keeps_every_leased_placement_is_accepted(cluster: Cluster, leased: Lease) -> None:
    assert update_inventory_of_n1(cluster, partitioned_gpu(0, ONES[4:]), partitioned_gpu(1, ONES[:3])) == []
    assert [len(each.fixed_layout) for each in Gpu.objects.order_by("index")] == [3, 3]


def test_a_gpu_that_is_no_longer_reported_is_not_sold_until_it_returns(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu(0), gpu(1))
    update_inventory_of_n1(cluster, gpu(0))
    assert Gpu.objects.get(index=1).health_reason == cluster_registration.NOT_REPORTED
    assert Gpu.objects.sellable().count() == 1
    update_inventory_of_n1(cluster, gpu(0), gpu(1))
    assert Gpu.objects.sellable().count() == 2


def test_a_gpu_reported_unhealthy_stays_unhealthy_until_an_operator_decides(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu(healthy=False))
    update_inventory_of_n1(cluster, gpu())  # unhealthy lasts until an operator decides
    assert Gpu.objects.get().health == "unhealthy"


def test_a_gpu_that_its_node_lacks_or_reports_as_lost_is_lost_until_it_returns(cluster: Cluster) -> None:
    def lost(*found: DiscoveredGpu) -> list[int]:
        update_inventory_of_n1(cluster, *found)
        return list(Gpu.objects.exclude(lost_since=None).order_by("index").values_list("index", flat=True))

    first, second = (replace(gpu(index), uuid=f"GPU-{index}") for index in range(2))
    assert lost(first, second) == []
    assert lost(first) == [1]
    assert lost(first, second) == []
    assert lost(first, replace(second, healthy=False, fault="xid=79", lost=True)) == [1]
    assert lost(first, second) == []
    assert lost() == []  # its plugin may just have restarted


def test_gpus_without_uuids_of_their_own_are_never_lost_one_by_one(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu(0), gpu(1))
    update_inventory_of_n1(cluster, gpu(0))  # it is unknown which of them is missing
    assert not Gpu.objects.exclude(lost_since=None).exists()


def test_a_mostly_unchanged_inventory_needs_few_statements(cluster: Cluster) -> None:
    def fleet(*broken: str) -> list[DiscoveredNode]:
        names = [f"n{number}" for number in range(60)]
        return [DiscoveredNode(name, tuple(gpu(i, healthy=name not in broken) for i in range(2))) for name in names]

    def statements(*broken: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            cluster_registration.update_inventory(cluster, fleet(*broken), now=NOW)
        return len(queries)

    assert statements() < 20  # 120 GPUs are new
    assert statements() < 12
    statements("n7")
    assert set(Gpu.objects.filter(health="unhealthy").values_list("node__name", "index")) == {
        ("n7", 0),
        ("n7", 1),
    }
    for _ in range(2):
        cluster_registration.update_inventory(cluster, fleet()[:59], now=NOW)
    assert Gpu.objects.filter(health_reason=cluster_registration.NOT_REPORTED).values_list(
        "node__name"
    ).distinct().get() == ("n59",)


def test_reports_of_a_node_under_repartition_are_ignored(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu(0), gpu(1))
    Gpu.objects.filter(index=0).update(out_of_service_since=NOW)
    assert update_inventory_of_n1(cluster, gpu(0, cuts=()), problems=("half of it is gone",)) == []
    assert Gpu.objects.filter(health="healthy", layout_policy="fixed").count() == 2


def test_inventory_problems_are_reported_with_their_node(cluster: Cluster) -> None:
    assert update_inventory_of_n1(cluster, problems=("GPUs of unknown",)) == ["n1: GPUs of unknown"]


@pytest.mark.parametrize(("problems", "for_sale"), [((), 12), (("slices have replicas",), 0)])
def test_an_empty_inventory_is_applied_only_if_nodes_report_problems(
    cluster: Cluster, problems: tuple[str, ...], for_sale: int
) -> None:
    """A suddenly empty list waits for a person, unless nodes explain it."""
    update_inventory_of_n1(cluster, *(gpu(index) for index in range(12)))
    found = update_inventory_of_n1(cluster, problems=problems)
    cluster.refresh_from_db()
    assert bool(cluster.inventory_paused_reason) is not bool(problems)
    assert found == ([f"n1: {each}" for each in problems] or [cluster.inventory_paused_reason])
    assert Gpu.objects.filter(health="healthy").count() == for_sale


WAY = cluster_registration.IngressSettings("leases.example.org", "ingress/public", "ssh.example.org:2222", "edge ssh")


def set_ingress_of(cluster: Cluster, way: cluster_registration.IngressSettings, *, version: int | None = None) -> None:
    seen = Cluster.objects.get(pk=cluster.pk).version if version is None else version
    cluster_registration.set_ingress(cluster, way, version=seen, actor=OPERATOR, now=NOW)


@pytest.mark.parametrize(
    "way",
    [
        WAY,
        cluster_registration.IngressSettings(),
        cluster_registration.IngressSettings("a.b", "gateway/edge/public"),
        cluster_registration.IngressSettings(bastion="jump"),
    ],
)
def test_ingress_settings_are_stored_and_audited(way: cluster_registration.IngressSettings, cluster: Cluster) -> None:
    set_ingress_of(cluster, way)
    kept = Cluster.objects.get(pk=cluster.pk)
    assert cluster_registration.IngressSettings(kept.domain, kept.ingress, kept.bastion, kept.allowed_namespaces) == way
    with staff_scope():
        (found,) = AuditEvent.objects.filter(action="cluster.set_access")
    assert way.bastion in str(found.detail)


@pytest.mark.parametrize(
    ("field", "way"),
    [
        ("domain", cluster_registration.IngressSettings("no domain", "ingress/public")),
        ("domain", cluster_registration.IngressSettings("https://leases.example", "ingress/public")),
        ("domain", cluster_registration.IngressSettings("", "ingress/public")),
        ("ingress", cluster_registration.IngressSettings("leases.example", "")),
        ("ingress", cluster_registration.IngressSettings("leases.example", "node-port/x")),
        ("ingress", cluster_registration.IngressSettings("leases.example", "gateway/only-one")),
        ("bastion", cluster_registration.IngressSettings(bastion="-oProxyCommand=evil")),
        ("bastion", cluster_registration.IngressSettings(bastion="host;rm -rf")),
        ("allowed_namespaces", cluster_registration.IngressSettings(allowed_namespaces="Edge")),
        ("allowed_namespaces", cluster_registration.IngressSettings(allowed_namespaces="edge ../kube-system")),
        ("allowed_namespaces", cluster_registration.IngressSettings(allowed_namespaces="gt-01m7ytenants")),
        ("allowed_namespaces", cluster_registration.IngressSettings(allowed_namespaces="a b c d e")),
    ],
)
def test_invalid_ingress_settings_are_refused(
    field: str, way: cluster_registration.IngressSettings, cluster: Cluster
) -> None:
    with pytest.raises(InvalidValue) as refused:
        set_ingress_of(cluster, way)
    assert refused.value.field == field


def test_ingress_settings_of_a_stale_version_are_refused(cluster: Cluster) -> None:
    set_ingress_of(cluster, WAY)
    with pytest.raises(StaleVersion):
        set_ingress_of(cluster, cluster_registration.IngressSettings(), version=1)
    assert Cluster.objects.get(pk=cluster.pk).ingress == "ingress/public"


def test_allowed_namespaces_are_stored_in_normal_form(cluster: Cluster) -> None:
    set_ingress_of(cluster, replace(WAY, allowed_namespaces=" ssh,edge , ssh"))
    assert Cluster.objects.get(pk=cluster.pk).allowed_namespaces == "edge ssh"


def test_gpu_links_are_stored_and_invalid_ones_dropped(cluster: Cluster) -> None:
    update_inventory_of_n1(cluster, gpu(0, fabric="6f3c.1", numa="pci0000:15"), gpu(1, fabric="a\0b", numa="n" * 65))
    assert list(Gpu.objects.order_by("index").values_list("fabric", "numa")) == [
        ("6f3c.1", "pci0000:15"),
        ("", ""),
    ]
    update_inventory_of_n1(cluster, gpu(0), gpu(1))
    assert set(Gpu.objects.values_list("fabric", "numa")) == {("", "")}


def test_a_driver_change_waits_until_the_leases_of_the_node_have_ended(cluster: Cluster, sim: Simulation) -> None:
    plugin, dra = (replace(DiscoveredNode("n1", (gpu(),)), driver=name) for name in ("device_plugin", "dra"))
    cluster_registration.update_inventory(cluster, [plugin], now=NOW)
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    lease = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    assert queue_scheduling.run_queue((MODEL, "eu"), now=sim.now) == 1
    [problem] = cluster_registration.update_inventory(cluster, [dra], now=NOW)
    assert "its GPUs are now requested by dra and its leases hold them by device_plugin" in problem
    assert Gpu.objects.get(node__cluster=cluster).driver == "device_plugin"
    with tenant_scope(lease.tenant_id):
        Allocation.objects.filter(lease=lease).update(released_at=sim.now)
    assert cluster_registration.update_inventory(cluster, [dra], now=NOW) == []
    assert Gpu.objects.get(node__cluster=cluster).driver == "dra"
