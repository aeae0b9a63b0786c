"""Rendered objects: golden files, API schemas and the restricted standard."""

from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_address, ip_network
from typing import Any

import kubernetes_validate
import pytest

from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.domain.workloads.templates import Workload
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import SliceDriver, UnsupportedSpec
from broker.provisioners.kubernetes.drivers.dra import device_class_of
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.cluster import cluster_objects
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects, spec_hash
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import LeaseSpec, OfferingSpec
from tests.broker.domain.fleet import H100
from tests.broker.provisioners.kubernetes import golden
from tests.broker.provisioners.kubernetes.lease_specs import (
    DRIVERS,
    EVERY_TEMPLATE,
    GANG,
    KEY,
    LEASE,
    MIG,
    PLUGIN,
    PROJECT,
    SHARE,
    VOLUME,
    WHOLE,
    kinds,
    of_kind,
    pods,
)
from tests.broker.provisioners.kubernetes.restricted_standard import violations

VERSIONS = ("1.34", "1.36", "1.37")
ALLOWED_NAMESPACES = ("edge", "gateway")
UID = "7b1f6c1e-7a54-4c11-9a5e-2b9d51a6f3a1"
UNKNOWN = {"HTTPRoute"}  # not part of Kubernetes itself, so its schemas do not have it


def rendered(lease: Any, driver: SliceDriver = PLUGIN) -> list[dict[str, Any]]:
    return [anchor(lease, driver), *lease_objects(lease, driver, anchor_uid=UID)]


A_QUARTER = replace(LEASE, offering=SHARE, slices=(replace(LEASE.slices[0], profile="quarter", start=2, size=2),))
EVERYTHING = {
    **{f"lease-{name}": rendered(lease) for name, lease in EVERY_TEMPLATE.items()},
    **{f"slices-{name}": rendered(LEASE, driver) for name, driver in DRIVERS.items()},
    **{f"gang-{name}": rendered(GANG, driver) for name, driver in DRIVERS.items()},
    **{f"shares-{name}": rendered(A_QUARTER, DRIVERS[name]) for name in ("device_plugin", "hami")},
    **{
        f"project-{name}": project_objects(PROJECT, driver, allowed_namespaces=ALLOWED_NAMESPACES)
        for name, driver in DRIVERS.items()
    },
    **{f"cluster-{name}": cluster_objects(driver, image="gpubroker:1") for name, driver in DRIVERS.items()},
}


def test_without_ingress_settings_a_project_allows_no_ingress() -> None:
    policies = of_kind(project_objects(PROJECT, PLUGIN), "NetworkPolicy")
    assert [each["spec"].get("ingress", []) for each in policies] == [[], [], []]
    assert all("Ingress" in each["spec"]["policyTypes"] for each in policies if "egress" not in each["spec"])


def test_egress_excludes_private_ipv4_and_ipv6_networks() -> None:
    policies = of_kind(project_objects(PROJECT, PLUGIN), "NetworkPolicy")
    (egress,) = (each["spec"]["egress"] for each in policies if each["metadata"]["name"] == "gpub-egress")
    blocks = [each["ipBlock"] for rule in egress for each in rule["to"] if "ipBlock" in each]

    def is_open(address: str) -> bool:
        where = ip_address(address)
        return any(
            where in ip_network(block["cidr"]) and not any(where in ip_network(but) for but in block["except"])
            for block in blocks
        )

    for private in ("169.254.169.254", "10.96.0.1", "192.168.1.1", "172.31.0.9", "100.100.0.1", "127.0.0.1"):
        assert not is_open(private)
        assert not is_open(f"64:ff9b::{private}"), "NAT64 leads to the same place"
    assert not any(map(is_open, ("::1", "fd00:ec2::254", "fe80::1", "64:ff9b:1::a00:1")))
    assert all(map(is_open, ("1.1.1.1", "2606:4700::1111", "64:ff9b::1.1.1.1")))


@pytest.mark.parametrize("name", EVERYTHING)
def test_rendered_objects_match_the_golden_files(name: str) -> None:
    golden.expect(name, EVERYTHING[name])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_rendered_objects_match_the_kubernetes_api_schemas(name: str, version: str) -> None:
    for each in EVERYTHING[name]:
        if each["kind"] not in UNKNOWN:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_rendered_pod_meets_the_restricted_standard(name: str) -> None:
    assert [violations(pod) for pod in pods(EVERYTHING[name])] == [[] for _ in pods(EVERYTHING[name])]


def test_the_pod_standard_checker_finds_violations() -> None:
    (pod,) = pods(rendered(LEASE))
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    pod["spec"]["securityContext"] = {"runAsUser": 0}
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert len(violations(pod)) >= 7


def test_rendering_is_deterministic_regardless_of_slice_order() -> None:
    turned = replace(GANG, slices=tuple(reversed(GANG.slices)))
    assert rendered(turned) == rendered(GANG)
    assert spec_hash(turned, PLUGIN) == spec_hash(GANG, PLUGIN)


def test_different_workloads_have_different_spec_hashes() -> None:
    program_specs = [lease.workload for lease in EVERY_TEMPLATE.values() if lease.route == LEASE.route]
    hashes = {spec_hash(replace(LEASE, workload=program_spec), PLUGIN) for program_spec in set(program_specs)}
    assert len(hashes) == len(set(program_specs))


@pytest.mark.parametrize("name", [name for name in EVERYTHING if not name.startswith("cluster")])
def test_all_objects_of_a_tenant_have_its_project_labels(name: str) -> None:
    for each in EVERYTHING[name]:
        assert each["metadata"]["labels"].items() >= labels.project_labels(PROJECT).items()


def test_all_lease_objects_except_volumes_are_owned_by_the_anchor() -> None:
    first, *rest = rendered(replace(GANG, volumes=(VOLUME,)), DRIVERS["dra"])
    assert first["kind"] == "ConfigMap"
    orphans = [each for each in rest if "ownerReferences" not in each["metadata"]]
    assert kinds(orphans) == ["PersistentVolumeClaim"]
    owners = [each["metadata"]["ownerReferences"] for each in rest if each not in orphans]
    assert {(owner["uid"], owner["name"]) for (owner,) in owners} == {(UID, first["metadata"]["name"])}


def test_claims_of_a_pod_are_applied_before_its_job() -> None:
    order = kinds(rendered(replace(GANG, volumes=(VOLUME,)), DRIVERS["dra"]))
    assert order.index("ResourceClaim") < order.index("Job")
    assert order.index("PersistentVolumeClaim") < order.index("Job")


@pytest.mark.parametrize(
    "name", [each for each in EVERYTHING if each.startswith(("lease", "slices", "gang", "shares"))]
)
def test_pod_controllers_are_applied_last(name: str) -> None:
    """A running pod proves that all other objects exist."""
    makers = {"Deployment", "StatefulSet", "Job"}
    order = [kind in makers for kind in kinds(EVERYTHING[name])]
    assert order == sorted(order)


def test_a_gang_has_one_pod_per_node_with_the_slices_of_that_node() -> None:
    found = pods(rendered(GANG))
    pinned = [_pin(pod) for pod in found]
    requests = [pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] for pod in found]
    assert pinned == ["gpu-node-1", "gpu-node-2"]
    assert requests == ["2", "2"]


def _pin(pod: dict[str, Any]) -> str:
    pinned = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(pinned["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def test_a_pod_requests_what_the_offering_promises_for_each_of_its_slices() -> None:
    promised = replace(WHOLE, resources=HostResources(cpu_milli=3400, memory_mib=13_312, scratch_mib=14_336))
    alone, both = replace(GANG, offering=promised, slices=GANG.slices[:1]), replace(GANG, offering=promised)
    requests = [_requests(pod) for pod in (*pods(rendered(alone)), *pods(rendered(both)))]
    two = ("6800m", "26624Mi", "28672Mi")
    assert requests == [("3400m", "13312Mi", "14336Mi"), two, two]


def test_shared_memory_and_scratch_have_the_limits_of_the_offering() -> None:
    (pod,) = pods(rendered(replace(LEASE, offering=replace(MIG, resources=HostResources(400, 1664, 2048)))))
    volumes = {each["name"]: each.get("emptyDir", {}).get("sizeLimit") for each in pod["spec"]["volumes"]}
    assert (volumes["shm"], volumes["scratch"]) == ("832Mi", "2048Mi")


def _requests(pod: dict[str, Any]) -> tuple[str, ...]:
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"]
    return tuple(resources["requests"][name] for name in ("cpu", "memory", "ephemeral-storage"))


def test_a_spot_lease_has_the_spot_priority_class() -> None:
    spot = replace(LEASE, offering=replace(LEASE.offering, price_class=PriceClass.SPOT))
    assert pods(rendered(spot))[0]["spec"]["priorityClassName"] == "gpub-spot"


def test_the_deadline_of_a_batch_job_is_its_paid_time() -> None:
    longer = replace(GANG, paid_until=GANG.paid_until + timedelta(hours=1))
    (was, *_), (now, *_) = of_kind(rendered(GANG), "Job"), of_kind(rendered(longer), "Job")
    assert was["spec"]["activeDeadlineSeconds"] == 7200
    assert now["spec"]["activeDeadlineSeconds"] == 10800


def test_tenant_commands_and_variables_are_not_expanded() -> None:
    program_spec = Workload("own", "python:3", "echo '$(GPUBROKER_LEASE)' $$", env=(("A", "$(B)$$"),))
    (container,) = pods(rendered(replace(LEASE, workload=program_spec)))[0]["spec"]["containers"]
    assert container["args"] == ["echo", "$$(GPUBROKER_LEASE)", "$$$$"]
    assert {"name": "A", "value": "$$(B)$$$$"} in container["env"]


def test_ssh_keys_and_tokens_are_in_immutable_secrets() -> None:
    ssh, jupyter = rendered(LEASE), rendered(EVERY_TEMPLATE["jupyter"])
    (keys,), (token,) = of_kind(ssh, "Secret"), of_kind(jupyter, "Secret")
    assert keys["immutable"] is token["immutable"] is True
    assert (list(keys["data"]), list(token["data"])) == (["authorized_keys"], ["token"])
    assert KEY not in str(pods(ssh))
    assert "sesame" not in str(pods(jupyter))


def test_a_batch_lease_has_no_secret_and_no_ingress() -> None:
    assert kinds(rendered(EVERY_TEMPLATE["batch"])) == ["ConfigMap", "Job"]


def test_an_unmetered_lease_has_no_finalizer() -> None:
    assert "finalizers" not in str(rendered(replace(LEASE, metered=False)))


def test_a_tenants_own_variable_never_replaces_the_secret_token() -> None:
    program_spec = Workload("jupyter", env=(("JUPYTER_TOKEN", "mine"),))
    (container,) = pods(rendered(replace(LEASE, workload=program_spec)))[0]["spec"]["containers"]
    assert next(each for each in container["env"] if each["name"] == "JUPYTER_TOKEN")["valueFrom"]


def requested_devices(lease: LeaseSpec) -> dict[str, str]:
    (pod,) = pods(rendered(lease))
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    return {name: count for name, count in limits.items() if name.startswith("nvidia.com/")}


@pytest.mark.parametrize(("profile", "size"), [("half", 4), ("quarter", 2)])
def test_a_share_of_any_size_requests_one_replica(profile: str, size: int) -> None:
    place = replace(LEASE.slices[0], profile=profile, start=0, size=size)
    assert requested_devices(replace(LEASE, offering=SHARE, slices=(place,))) == {"nvidia.com/gpu.shared": "1"}


def test_two_shares_in_one_pod_are_refused() -> None:
    places = tuple(replace(LEASE.slices[0], profile="quarter", start=start, size=2) for start in (0, 2))
    with pytest.raises(UnsupportedSpec, match="one replica"):
        rendered(replace(LEASE, offering=SHARE, slices=places))


def test_hami_limits_memory_and_compute_of_a_soft_share_on_its_gpu() -> None:
    (pod,) = pods(EVERYTHING["shares-hami"])
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    values = {name: count for name, count in limits.items() if name.startswith("nvidia.com/")}
    quarter = {"nvidia.com/gpumem": "20480", "nvidia.com/gpucores": "25"}
    assert values == {"nvidia.com/gpu": "1", **quarter}
    found = pod["metadata"]["annotations"]
    assert found["nvidia.com/use-gpuuuid"] == LEASE.slices[0].gpu_uuid
    assert found["nvidia.com/vgpu-mode"] == "hami-core"
    assert pod["spec"]["schedulerName"] == "hami-scheduler"


def test_hami_refuses_two_shares_of_one_gpu_and_shares_without_isolation() -> None:
    twice = replace(A_QUARTER, slices=(*A_QUARTER.slices, replace(A_QUARTER.slices[0], start=4)))
    with pytest.raises(UnsupportedSpec, match="one share of a GPU"):
        rendered(twice, DRIVERS["hami"])
    with pytest.raises(UnsupportedSpec, match="sell it as soft"):
        rendered(replace(A_QUARTER, offering=replace(SHARE, isolation=Isolation.NONE)), DRIVERS["hami"])


@pytest.mark.parametrize("offering", [SHARE, MIG])
def test_the_resource_name_of_a_slice_overrides_the_default(offering: OfferingSpec) -> None:
    place = replace(LEASE.slices[0], resource_name="nvidia.com/gpu")
    assert requested_devices(replace(LEASE, offering=offering, slices=(place,))) == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("name", ["device_plugin", "dra", "dra_extended"])
def test_the_project_quota_counts_every_sellable_slice(name: str) -> None:
    hard = of_kind(EVERYTHING[f"project-{name}"], "ResourceQuota")[0]["spec"]["hard"]
    for profile in ("1g.10gb", "1g.10gb+me", "3g.40gb", "7g.80gb"):
        found = gfd.mig_resource_name(profile) if name == "device_plugin" else device_class_of(profile)
        assert any(found in line for line in hard), f"no line counts {profile}"


def test_every_claimable_slice_has_a_device_class() -> None:
    there = {each["metadata"]["name"] for each in of_kind(EVERYTHING["cluster-dra"], "DeviceClass")}
    assert {device_class_of(profile.name) for profile in H100.profiles_with(Isolation.HARDWARE)} <= there


def test_broker_roles_have_no_wildcards_and_cannot_read_secrets() -> None:
    roles = of_kind(EVERYTHING["cluster-dra"], "ClusterRole")
    rules = [rule for role in roles for rule in role["rules"]]
    assert "*" not in str(rules)
    secrets = [rule["verbs"] for rule in rules if "secrets" in rule["resources"]]
    assert secrets == [["create", "patch"]]


def test_at_least_twenty_rights_are_forbidden_and_none_is_granted() -> None:
    refused, given = (
        set(rbac.FORBIDDEN_RIGHTS),
        set(rbac.list_rights((*rbac.BROKER_RULES, *rbac.DOCTOR_RULES))),
    )
    assert len(refused) >= 20
    assert not refused & given


@pytest.mark.parametrize("isolation", [Isolation.SOFT, Isolation.NONE])
def test_dra_refuses_shares(isolation: Isolation) -> None:
    with pytest.raises(UnsupportedSpec, match="not shares"):
        rendered(replace(LEASE, offering=replace(LEASE.offering, isolation=isolation)), DRIVERS["dra"])
