"""Checks of GPUs: whether nodes report their GPUs and these can be sold."""

from collections import Counter
from collections.abc import Mapping

from broker.domain.geometry.product_names import mig_profile_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, bad, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, RawObject, require_readable
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.cloud_labels import read_gke_sharing
from broker.provisioners.kubernetes.drivers.dra import device_class_of
from broker.provisioners.kubernetes.drivers.dra_devices import attribute_text as text_of
from broker.provisioners.kubernetes.drivers.driver_registry import AUTOMATIC
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION

CPU_DRIVER = "cpu"
MIG_STRATEGY, MIG_STATE = "nvidia.com/mig.strategy", "nvidia.com/mig.config.state"
GPU_RESOURCE, SHARED_GPU_RESOURCE = "nvidia.com/gpu", "nvidia.com/gpu.shared"
DRA_DRIVER = "gpu.nvidia.com"  # NVIDIA's DRA driver
NO_DRA_NODES = "no node publishes its GPUs as ResourceSlices"


def gpu_nodes(s: ClusterSnapshot) -> list[ClusterNode]:
    """Return the nodes whose labels or resources show NVIDIA GPUs."""
    return [
        node for node in require_readable(s.nodes) if gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable)
    ]


def _cpu_nodes(s: ClusterSnapshot) -> int:
    """Return how many nodes sell their CPUs."""
    return sum(bool(node.gpus) for node in require_readable(s.inventory) if node.driver == CPU_DRIVER)


def plugin_nodes(s: ClusterSnapshot) -> list[ClusterNode]:
    """Return the nodes whose GPUs a device plugin offers."""
    published = _published_nodes(s)
    return [node for node in (gpu_nodes(s) if s.uses("device_plugin") else ()) if node.metadata.name not in published]


def _published_nodes(s: ClusterSnapshot) -> set[str]:
    """Return the nodes whose GPUs are published as ResourceSlices, if the cluster uses them."""
    return _nodes_with_slices(s) if s.uses("dra") else set()


def _nodes_with_slices(s: ClusterSnapshot) -> set[str]:
    return {each.spec.node_name for each in require_readable(s.slices) if each.spec.driver == DRA_DRIVER}


def allocatable_amount(node: ClusterNode, resource: str) -> int:
    text = node.status.allocatable.get(resource, "0")
    return int(text) if text.isdigit() else 0


def _check_gpu_nodes(s: ClusterSnapshot) -> CheckResult:
    machines = gpu_nodes(s)
    if not machines and _published_nodes(s):
        return ok("GPUs are published as ResourceSlices")
    if not machines and _cpu_nodes(s):
        return ok(f"no node has NVIDIA GPUs; {_cpu_nodes(s)} sell their CPUs")
    if not machines:
        return bad(
            f"none of {len(require_readable(s.nodes))} nodes shows an NVIDIA GPU",
            "Install NVIDIA's GPU operator (or GPU Feature Discovery alone) and wait until its pods are ready.",
        )
    return ok(f"{len(machines)} of {len(require_readable(s.nodes))} nodes have GPUs")


def _check_operator(s: ClusterSnapshot) -> CheckResult:
    policies, clusters = require_readable(s.cluster_policies), require_readable(s.gpu_clusters)
    if policies and clusters:
        return bad(
            "both a ClusterPolicy and a GPUCluster",
            "Keep one, as both manage the same nodes. Delete the GPUCluster unless all nodes should use DRA.",
        )
    if clusters:
        reported = "a GPUCluster (technology preview)"
        fix = "Run `manage.py kube_setup --driver automatic --update NAME`, or with `dra` if all of its nodes use DRA."
        return ok(reported) if s.uses("dra") else bad(reported, fix)
    if policies:
        return ok("a ClusterPolicy")
    return warn(
        "neither a ClusterPolicy nor a GPUCluster",
        "Without NVIDIA's operator, maintain the device plugin, GPU discovery and mig-manager yourself.",
    )


def _check_operator_ready(s: ClusterSnapshot) -> CheckResult:
    states = {
        each["metadata"]["name"]: each.get("status", {}).get("state", "without a state")
        for each in (*require_readable(s.cluster_policies), *require_readable(s.gpu_clusters))
    }
    late = [f"{name} is {state}" for name, state in states.items() if state != "ready"]
    if late:
        return warn(list_some(late), "Run `kubectl get pods -n gpu-operator`. It is ready when all of its pods are.")
    return ok("ready") if states else unknown("no GPU operator is installed", "See the check operator.")


def _check_mig_strategy(s: ClusterSnapshot) -> CheckResult:
    reported = Counter(node.metadata.labels.get(MIG_STRATEGY, "none") for node in plugin_nodes(s))
    if not reported:
        return ok("not applicable")
    if reported["single"]:
        return warn(
            f"single on {reported['single']} nodes",
            "Set mig.strategy to mixed in the ClusterPolicy (its default is single). Slices then have their own names,"
            " and each node can be repartitioned.",
        )
    if reported["none"] and any(_is_mig_capable(node) for node in plugin_nodes(s)):
        return warn(
            f"none on {reported['none']} nodes with MIG-capable GPUs",
            "To sell slices, set mig.strategy to mixed in the ClusterPolicy.",
        )
    return ok(", ".join(f"{word} on {count}" for word, count in sorted(reported.items())))


def _is_mig_capable(node: ClusterNode) -> bool:
    return node.metadata.labels.get("nvidia.com/mig.capable") == "true"


def _check_sellable(s: ClusterSnapshot) -> CheckResult:
    problems = [
        f"{node.name}: {problem}"
        for node in require_readable(s.inventory)
        for problem in (*node.problems, node.refusal)
        if problem
    ]
    if problems:
        return warn(
            list_some(problems, 2), "Fix the listed problems. These GPUs are not sold until then; all others are."
        )
    gpus = sum(len(node.gpus) for node in require_readable(s.inventory) if node.driver != CPU_DRIVER)
    if cpu_nodes := _cpu_nodes(s):
        return ok(f"{gpus} GPUs and the CPUs of {cpu_nodes} nodes can be sold")
    return ok(f"{gpus} GPUs can be sold") if gpus else bad("no GPU can be sold", "See the check gpu-nodes.")


def _check_devices_agree(s: ClusterSnapshot) -> CheckResult:
    """Compare the labels of nodes with what their device plugin offers."""
    machines = plugin_nodes(s)
    if not machines:
        return ok("not applicable")
    wrong = []
    for node in machines:
        for profile, reported in _labelled_slices(node).items():
            given = allocatable_amount(node, gfd.mig_resource_name(profile)) + allocatable_amount(
                node, f"{gfd.mig_resource_name(profile)}.shared"
            )
            if reported != given:
                wrong.append(f"{node.metadata.name} labels {reported} of {profile} but offers {given}")
        if not any(name.startswith("nvidia.com/") and count != "0" for name, count in _allocatable(node)):
            wrong.append(f"{node.metadata.name} offers no devices")
    if wrong:
        return bad(
            list_some(wrong, 2),
            "Restart device plugin and gpu-feature-discovery on these nodes. If GPUs are missing, look for Xid errors.",
        )
    return ok("labels and devices agree")


def _allocatable(node: ClusterNode) -> list[tuple[str, str]]:
    return list(node.status.allocatable.items())


def _labelled_slices(node: ClusterNode) -> dict[str, int]:
    """Return the number of slices of each profile that the labels report."""
    found = {}
    for name, text in node.metadata.labels.items():
        if name.startswith("nvidia.com/mig-") and name.endswith(".count") and text.isdigit():
            profile = name.removeprefix("nvidia.com/mig-").removesuffix(".count")
            replicas = node.metadata.labels.get(f"nvidia.com/mig-{profile}.replicas", "1")
            found[mig_profile_name(profile)] = int(text) * max(int(replicas) if replicas.isdigit() else 1, 1)
    return found


def _check_sharing(s: ClusterSnapshot) -> CheckResult:
    labelled = [(node, gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable)) for node in gpu_nodes(s)]
    replicated = [
        node.metadata.name
        for node, found in labelled
        if found
        and (found.shared_slices or gfd.shared_profiles(node.status.allocatable) or _shares_single_slices(found))
    ]
    if replicated:
        return bad(
            f"MIG slices have replicas on {list_some(replicated)}",
            "Remove MIG from the device plugin's sharing config: two tenants would get one slice. These nodes are"
            " not sold until then.",
        )
    shared = [node for node, found in labelled if found and found.shared]
    if not shared:
        return ok("no GPU is shared by replicas")
    config = _plugin_config(s)
    unnamed = [
        node.metadata.name
        for node in shared
        if not allocatable_amount(node, SHARED_GPU_RESOURCE)
        and allocatable_amount(node, GPU_RESOURCE)
        and read_gke_sharing(node.metadata.labels) is None  # GKE's plugin cannot be told to rename them
    ]
    if unnamed:
        return warn(
            f"replicas are called {GPU_RESOURCE} on {list_some(unnamed)}",
            "Set renameByDefault: true in the device plugin's sharing config, so that a share does not look like a"
            " whole GPU. They are sold as shares in any case.",
        )
    if config is not None and "failRequestsGreaterThanOne: true" not in config:
        return warn(
            "a pod can request several replicas",
            "Set failRequestsGreaterThanOne: true, as two replicas are not twice the compute.",
        )
    return ok(f"shared on {len(shared)} nodes, one replica per pod")


def _shares_single_slices(found: gfd.GpuLabels) -> bool:
    """Tell whether what is offered as a GPU is a replica of a slice."""
    return found.shared and bool(found.slice_profile)


def _plugin_config(s: ClusterSnapshot) -> str | None:
    """Return the device plugin's configuration; None if it cannot be identified."""
    named = {
        each.get("spec", {}).get("devicePlugin", {}).get("config", {}).get("name")
        for each in require_readable(s.cluster_policies)
    } - {None, ""}
    texts = [_config_text(each) for each in require_readable(s.config_maps) if each["metadata"]["name"] in named]
    return "\n".join(texts) if texts else None


def _config_text(config_map: RawObject) -> str:
    return "\n".join(config_map.get("data", {}).values())


def _check_resource_names(s: ClusterSnapshot) -> CheckResult:
    both = [
        node.metadata.name
        for node in gpu_nodes(s)
        if allocatable_amount(node, GPU_RESOURCE) and allocatable_amount(node, SHARED_GPU_RESOURCE)
    ]
    if both:
        return warn(
            f"{GPU_RESOURCE} and {SHARED_GPU_RESOURCE} on {list_some(both)}",
            "Use separate nodes for whole and shared GPUs: shared GPUs of a node are sold as replicas only.",
        )
    # On different nodes one name may have both sources: the scheduler takes what the node has.
    twice = _resources_by_class(s)
    offered_twice = [
        (node.metadata.name, name)
        for node in gpu_nodes(s)
        for name, count in _allocatable(node)
        if node.metadata.name in _nodes_with_slices(s) and name in twice and count != "0"
    ]
    if offered_twice:
        nodes, named = ({pair[n] for pair in offered_twice} for n in (0, 1))
        return bad(
            f"{list_some(named)} of {list_some(nodes)} is offered by a device plugin and by a DeviceClass",
            "Remove the device plugin from these nodes, or extendedResourceName from the DeviceClass.",
        )
    return ok("every resource has one source")


def _resources_by_class(s: ClusterSnapshot) -> set[str]:
    published = any(each.spec.driver == DRA_DRIVER for each in require_readable(s.slices))
    names_of = {
        str(each.get("spec", {}).get("extendedResourceName", "")) for each in require_readable(s.device_classes)
    }
    return names_of - {""} if published else set()


def _check_mig_layouts(s: ClusterSnapshot) -> CheckResult:
    cuttable = {node.metadata.name for node in plugin_nodes(s) if _is_mig_capable(node)}
    if not cuttable:
        return ok("not applicable")
    metas = [each["metadata"] for each in require_readable(s.config_maps)]
    ours_to_read = [meta for meta in metas if meta.get("namespace") == labels.OPERATOR_NAMESPACE]
    labelled = {meta.get("labels", {}).get(labels.NODE_NAME_LABEL, "") for meta in ours_to_read}
    if without := cuttable - labelled:
        return warn(
            f"no list of valid layouts for {list_some(without)}",
            f"Upgrade the mig-manager in the namespace {labels.OPERATOR_NAMESPACE} to v0.15 or newer. Until then,"
            " these nodes keep their layout.",
        )
    return ok(f"valid layouts of {len(cuttable)} nodes are known")


def _check_mig_config_map(s: ClusterSnapshot) -> CheckResult:
    """Check that mig-managers read layouts from the ConfigMap we write.

    Otherwise every repartition would end in quarantine.
    """
    if not any(_is_mig_capable(node) for node in plugin_nodes(s)):
        return ok("not applicable")
    fix = (
        f"Set migManager.config.name: {labels.LAYOUT_CONFIG_MAP} in the ClusterPolicy."
        " Do not approve layout plans until then."
    )
    named = {
        each.get("spec", {}).get("migManager", {}).get("config", {}).get("name", "")
        for each in require_readable(s.cluster_policies)
    }
    if not named:
        return unknown("no ClusterPolicy names the layouts that mig-managers read", fix)
    if named != {labels.LAYOUT_CONFIG_MAP}:
        return warn(f"mig-managers read {list_some(named - {'', labels.LAYOUT_CONFIG_MAP}) or 'their own list'}", fix)
    return ok(f"mig-managers read {labels.LAYOUT_CONFIG_MAP}")


def _check_mig_state(s: ClusterSnapshot) -> CheckResult:
    states: Mapping[str, str] = {node.metadata.name: node.metadata.labels.get(MIG_STATE, "") for node in gpu_nodes(s)}
    if failed := [name for name, state in states.items() if state == "failed"]:
        return bad(f"failed on {list_some(failed)}", "Check the mig-manager's log there. A reboot may be needed.")
    if busy := [name for name, state in states.items() if state in ("pending", "rebooting")]:
        return warn(
            f"in progress on {list_some(busy)}",
            "If it takes over ten minutes, set nvidia.com/mig.config to another name and back.",
        )
    return ok("no node is being repartitioned")


def _check_dra_driver(s: ClusterSnapshot) -> CheckResult:
    if not s.uses("dra"):
        return ok("not applicable")
    if "resource.k8s.io/v1" not in require_readable(s.groups):
        fix = "Upgrade to 1.34 or newer; DRA is always on from 1.35."
        if s.driver == AUTOMATIC:
            fix += " Or register the cluster with the driver `device_plugin`."
        return bad("resource.k8s.io/v1 is not served", fix)
    nodes = _published_nodes(s)
    if not nodes and s.driver == AUTOMATIC:
        return ok(NO_DRA_NODES)
    if not nodes:
        return bad("no ResourceSlices of gpu.nvidia.com", "Install NVIDIA's DRA driver with GPUs enabled.")
    if s.unpublished:
        lacking = sorted({profile for profiles in s.unpublished.values() for profile in profiles})
        return warn(
            f"{list_some(s.unpublished)} do not publish {list_some(lacking)}, which their GPUs support",
            "These profiles are not sold there. To sell them, update NVIDIA's DRA driver.",
        )
    return ok(f"GPUs of {len(nodes)} nodes are published")


def _check_device_classes(s: ClusterSnapshot) -> CheckResult:
    if not s.uses("dra"):
        return ok("not applicable")
    if s.driver == AUTOMATIC and not _published_nodes(s):
        return ok(NO_DRA_NODES)
    there = {each["metadata"]["name"] for each in require_readable(s.device_classes)}
    if "gpu.nvidia.com" not in there:
        return bad("no DeviceClass gpu.nvidia.com", "Install the chart of NVIDIA's DRA driver, which creates it.")
    ours = sum(name.endswith(labels.DOMAIN) for name in there)
    published = {text_of(each, "profile") for slice_ in require_readable(s.slices) for each in slice_.spec.devices} - {
        ""
    }
    if lack := sorted(profile for profile in published if device_class_of(profile) not in there):
        reported = f"no DeviceClass of the broker for published profiles {list_some(lack)}"
        fix = (
            f"Run `manage.py kube_setup --driver {s.driver}` again. It creates one for every profile of every known"
            " model; others are not sold."
        )
        return warn(reported, fix) if ours else bad(reported, fix)
    return ok(f"NVIDIA's and {ours} of the broker")


def _check_hami(s: ClusterSnapshot) -> CheckResult:
    if s.driver == AUTOMATIC and not any(
        REGISTER_ANNOTATION in node.metadata.annotations for node in require_readable(s.nodes)
    ):
        return ok("HAMi manages no node")
    if not s.uses("hami"):
        return ok("not applicable")
    if not any("hami" in each["metadata"]["name"].lower() for each in require_readable(s.webhooks)):
        return bad("no webhook of HAMi", "Install HAMi. Its limits are not enforced without it.")
    return ok("its webhook exists; enforcement of its limits is not tested")


CHECKS = (
    ClusterCheck("gpu-nodes", "Only GPUs that nodes report can be sold.", _check_gpu_nodes),
    ClusterCheck("operator", "It installs everything that pods need to use GPUs.", _check_operator),
    ClusterCheck("operator-ready", "Until it is ready, nodes may appear and disappear.", _check_operator_ready),
    ClusterCheck(
        "mig-strategy", "With `single`, a slice looks like a whole GPU to quotas and the broker.", _check_mig_strategy
    ),
    ClusterCheck("sellable-gpus", "Only GPUs that are understood are sold.", _check_sellable),
    ClusterCheck("devices-agree", "The device plugin must offer what is sold.", _check_devices_agree),
    ClusterCheck("sharing", "Replicas are not isolated and must not look like GPUs.", _check_sharing),
    ClusterCheck("resource-names", "If two sources offer one name, the GPU is ambiguous.", _check_resource_names),
    ClusterCheck("mig-layouts", "Nodes only get layouts that are valid for them.", _check_mig_layouts),
    ClusterCheck("mig-reads", "A node that cannot read its layout fails and is quarantined.", _check_mig_config_map),
    ClusterCheck("mig-state", "A node offers no GPUs while it is repartitioned.", _check_mig_state),
    ClusterCheck("dra-driver", "Resource claims are allocated from what it publishes.", _check_dra_driver),
    ClusterCheck("device-classes", "Resource claims refer to them.", _check_device_classes),
    ClusterCheck("hami", "It limits memory and compute of soft slices.", _check_hami),
)
