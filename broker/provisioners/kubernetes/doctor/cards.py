"""Do the nodes say what cards they have, and can that be sold?"""

from collections import Counter
from collections.abc import Mapping

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.doctor.findings import Answer, Check, bad, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, Thing, seen
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.dra import class_of
from broker.provisioners.kubernetes.drivers.dra import text as text_of
from broker.provisioners.kubernetes.objects import Node

STRATEGY, STATE = "nvidia.com/mig.strategy", "nvidia.com/mig.config.state"
CARD, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
PUBLISHES = "gpu.nvidia.com"  # NVIDIA's DRA driver


def gpu_nodes(s: Snapshot) -> list[Node]:
    """Return the nodes on which discovery found cards."""
    return [node for node in seen(s.nodes) if gfd.read(node.metadata.labels)]


def amount(node: Node, resource: str) -> int:
    text = node.status.allocatable.get(resource, "0")
    return int(text) if text.isdigit() else 0


def _has_cards(s: Snapshot) -> Answer:
    machines = gpu_nodes(s)
    if not machines and s.driver == "dra" and any(each.spec.driver == PUBLISHES for each in seen(s.slices)):
        return ok("cards are published as ResourceSlices")
    if not machines:
        return bad(
            f"none of {len(seen(s.nodes))} nodes carries the label nvidia.com/gpu.product",
            "Install NVIDIA's GPU operator (or GPU Feature Discovery alone) and wait until its pods are ready.",
        )
    return ok(f"{len(machines)} of {len(seen(s.nodes))} nodes have cards")


def _operator(s: Snapshot) -> Answer:
    policies, clusters = seen(s.cluster_policies), seen(s.gpu_clusters)
    if policies and clusters:
        return bad(
            "both a ClusterPolicy and a GPUCluster",
            "Keep one: they fight for the same nodes. Delete the GPUCluster unless all nodes are to use DRA.",
        )
    if clusters:
        said = "a GPUCluster (technology preview)"
        return ok(said) if s.driver == "dra" else bad(said, "Register this cluster with the driver dra.")
    if policies:
        return ok("a ClusterPolicy")
    return warn(
        "neither a ClusterPolicy nor a GPUCluster",
        "Without NVIDIA's operator look after device plugin, discovery and mig-manager yourself.",
    )


def _operator_ready(s: Snapshot) -> Answer:
    states = {
        each["metadata"]["name"]: each.get("status", {}).get("state", "nothing")
        for each in (*seen(s.cluster_policies), *seen(s.gpu_clusters))
    }
    late = [f"{name} says {state}" for name, state in states.items() if state != "ready"]
    if late:
        return warn(
            names(late), "Look at `kubectl get pods -n gpu-operator`; it is ready when all of them are."
        )
    return ok("ready") if states else unknown("there is no operator to ask", "See operator.")


def _strategy(s: Snapshot) -> Answer:
    said = Counter(node.metadata.labels.get(STRATEGY, "none") for node in gpu_nodes(s))
    if s.driver != "device_plugin" or not said:
        return ok("of no matter here")
    if said["single"]:
        return warn(
            f"single on {said['single']} nodes",
            "Set mig.strategy to mixed in the ClusterPolicy (its default is single): a slice is then called a slice,"
            " and each node may be cut anew.",
        )
    if said["none"] and any(_cuttable(node) for node in gpu_nodes(s)):
        return warn(
            f"none on {said['none']} nodes whose cards could be cut",
            "Set mig.strategy to mixed in the ClusterPolicy if slices are to be sold.",
        )
    return ok(", ".join(f"{word} on {count}" for word, count in sorted(said.items())))


def _cuttable(node: Node) -> bool:
    return node.metadata.labels.get("nvidia.com/mig.capable") == "true"


def _readable(s: Snapshot) -> Answer:
    problems = [f"{node.name}: {problem}" for node in seen(s.found) for problem in node.problems]
    if problems:
        return warn(names(problems, 2), "What is named stays unsold until then; everything else is sold.")
    cards = sum(len(node.cards) for node in seen(s.found))
    return ok(f"{cards} cards can be sold") if cards else bad("no card can be sold", "See cards.")


def _agree(s: Snapshot) -> Answer:
    """Compare what nodes are labelled with and what their device plugin gives."""
    if s.driver != "device_plugin":
        return ok("of no matter here")
    wrong = []
    for node in gpu_nodes(s):
        for profile, said in _labelled(node).items():
            given = amount(node, gfd.resource_of(profile)) + amount(
                node, f"{gfd.resource_of(profile)}.shared"
            )
            if said != given:
                wrong.append(f"{node.metadata.name} labels {said} of {profile} but gives {given}")
        if not any(name.startswith("nvidia.com/") and count != "0" for name, count in _given(node)):
            wrong.append(f"{node.metadata.name} gives nothing")
    if wrong:
        return bad(
            names(wrong, 2),
            "Restart the device plugin and gpu-feature-discovery on these nodes; look for Xid errors if cards lack.",
        )
    return ok("labels and devices agree")


def _given(node: Node) -> list[tuple[str, str]]:
    return list(node.status.allocatable.items())


def _labelled(node: Node) -> dict[str, int]:
    """Return how many slices of each profile the labels tell of."""
    found = {}
    for name, text in node.metadata.labels.items():
        if name.startswith("nvidia.com/mig-") and name.endswith(".count") and text.isdigit():
            profile = name.removeprefix("nvidia.com/mig-").removesuffix(".count")
            replicas = node.metadata.labels.get(f"nvidia.com/mig-{profile}.replicas", "1")
            found[profile.replace(".me", "+me")] = int(text) * max(
                int(replicas) if replicas.isdigit() else 1, 1
            )
    return found


def _sharing(s: Snapshot) -> Answer:
    told = [(node, gfd.read(node.metadata.labels)) for node in gpu_nodes(s)]
    walled = [
        node.metadata.name
        for node, found in told
        if found
        and (found.shared_slices or gfd.shared_profiles(node.status.allocatable) or _single_shared(found))
    ]
    if walled:
        return bad(
            f"MIG slices have replicas on {names(walled)}",
            "Take MIG out of the device plugin's sharing config: two tenants would get one slice. Nothing is sold"
            " there until then.",
        )
    shared = [node for node, found in told if found and found.shared]
    if not shared:
        return ok("no card is shared by replicas")
    config = _plugin_config(s)
    unnamed = [node.metadata.name for node in shared if not amount(node, SHARED) and amount(node, CARD)]
    if unnamed:
        return warn(
            f"replicas are called {CARD} on {names(unnamed)}",
            "Set renameByDefault: true in the device plugin's sharing config: a quarter of a card must not look whole."
            " They are sold as shares all the same.",
        )
    if config is not None and "failRequestsGreaterThanOne: true" not in config:
        return warn(
            "a pod may ask for several replicas",
            "Set failRequestsGreaterThanOne: true: two replicas are not twice the compute.",
        )
    return ok(f"shared on {len(shared)} nodes, one replica a pod")


def _single_shared(found: gfd.Discovered) -> bool:
    """Tell whether what calls itself a card is a replica of a slice."""
    return found.shared and bool(found.slice_profile)


def _plugin_config(s: Snapshot) -> str | None:
    """Return the device plugin's configuration; None where it cannot be told which it is."""
    named = {
        each.get("spec", {}).get("devicePlugin", {}).get("config", {}).get("name")
        for each in seen(s.cluster_policies)
    } - {None, ""}
    texts = [_text(each) for each in seen(s.config_maps) if each["metadata"]["name"] in named]
    return "\n".join(texts) if texts else None


def _text(config_map: Thing) -> str:
    return "\n".join(config_map.get("data", {}).values())


def _names_collide(s: Snapshot) -> Answer:
    both = [node.metadata.name for node in gpu_nodes(s) if amount(node, CARD) and amount(node, SHARED)]
    if both:
        return warn(
            f"{CARD} and {SHARED} on {names(both)}",
            "Give whole and shared cards separate nodes: a node's shared cards are sold as replicas only.",
        )
    twice = _by_class(s) & {name for node in gpu_nodes(s) for name, count in _given(node) if count != "0"}
    if twice:
        return bad(
            f"{names(twice)} is given by a device plugin and by a DeviceClass",
            "Remove the device plugin from these nodes, or extendedResourceName from the DeviceClass.",
        )
    return ok("every resource has one giver")


def _by_class(s: Snapshot) -> set[str]:
    published = any(each.spec.driver == PUBLISHES for each in seen(s.slices))
    names_of = {str(each.get("spec", {}).get("extendedResourceName", "")) for each in seen(s.device_classes)}
    return names_of - {""} if published else set()


def _mig_configs(s: Snapshot) -> Answer:
    cuttable = {node.metadata.name for node in gpu_nodes(s) if _cuttable(node)}
    if not cuttable or s.driver != "device_plugin":
        return ok("of no matter here")
    metas = [each["metadata"] for each in seen(s.config_maps)]
    ours_to_read = [meta for meta in metas if meta.get("namespace") == labels.OPERATOR]
    told = {meta.get("labels", {}).get(labels.OF_NODE, "") for meta in ours_to_read}
    if without := cuttable - told:
        return warn(
            f"no list of legal layouts for {names(without)}",
            f"Upgrade the mig-manager to v0.15 or newer, in the namespace {labels.OPERATOR}; until then these nodes"
            " keep the cut they have.",
        )
    return ok(f"legal layouts of {len(cuttable)} nodes are known")


def _mig_reads(s: Snapshot) -> Answer:
    """Find whether mig-managers read layouts from where we write them: else every change would end in quarantine."""
    if s.driver != "device_plugin" or not any(_cuttable(node) for node in gpu_nodes(s)):
        return ok("of no matter here")
    fix = f"Set migManager.config.name: {labels.LAYOUTS} in the ClusterPolicy; until then approve no plan of a layout."
    named = {
        each.get("spec", {}).get("migManager", {}).get("config", {}).get("name", "")
        for each in seen(s.cluster_policies)
    }
    if not named:
        return unknown("there is no ClusterPolicy that says what mig-managers read", fix)
    if named != {labels.LAYOUTS}:
        return warn(f"mig-managers read {names(named - {'', labels.LAYOUTS}) or 'a list of their own'}", fix)
    return ok(f"mig-managers read {labels.LAYOUTS}")


def _wedged(s: Snapshot) -> Answer:
    states: Mapping[str, str] = {
        node.metadata.name: node.metadata.labels.get(STATE, "") for node in gpu_nodes(s)
    }
    if failed := [name for name, state in states.items() if state == "failed"]:
        return bad(f"failed on {names(failed)}", "Read the mig-manager's log there; a reboot may be needed.")
    if busy := [name for name, state in states.items() if state in ("pending", "rebooting")]:
        return warn(
            f"under way on {names(busy)}",
            "If it stays so for ten minutes, set nvidia.com/mig.config to another name and back.",
        )
    return ok("no node is being cut")


def _dra(s: Snapshot) -> Answer:
    if s.driver != "dra":
        return ok("of no matter here")
    if "resource.k8s.io/v1" not in seen(s.groups):
        return bad(
            "resource.k8s.io/v1 is not served", "Upgrade to 1.34 or newer; DRA is always on from 1.35."
        )
    nodes = {each.spec.node_name for each in seen(s.slices) if each.spec.driver == PUBLISHES}
    if not nodes:
        return bad("no ResourceSlices of gpu.nvidia.com", "Install NVIDIA's DRA driver with gpus enabled.")
    if s.unpublished:
        lacking = sorted({profile for profiles in s.unpublished.values() for profile in profiles})
        return warn(
            f"{names(s.unpublished)} publish no {names(lacking)}, which their cards could be cut into",
            "It is not sold there. Update NVIDIA's DRA driver if it should be.",
        )
    return ok(f"cards of {len(nodes)} nodes are published")


def _classes(s: Snapshot) -> Answer:
    if s.driver != "dra":
        return ok("of no matter here")
    there = {each["metadata"]["name"] for each in seen(s.device_classes)}
    if "gpu.nvidia.com" not in there:
        return bad("no DeviceClass gpu.nvidia.com", "NVIDIA's DRA driver brings it: install its chart.")
    ours = sum(name.endswith(labels.DOMAIN) for name in there)
    published = {text_of(each, "profile") for slice_ in seen(s.slices) for each in slice_.spec.devices} - {""}
    if lack := sorted(profile for profile in published if class_of(profile) not in there):
        said = f"no DeviceClass of ours for {names(lack)}, which nodes publish"
        fix = (
            "Run `manage.py kube_setup --driver dra` again: it makes one for every profile of every model we know;"
            " others are not sold."
        )
        return warn(said, fix) if ours else bad(said, fix)
    return ok(f"NVIDIA's, and {ours} of ours")


def _hami(s: Snapshot) -> Answer:
    if s.driver != "hami":
        return ok("of no matter here")
    if not any("hami" in each["metadata"]["name"].lower() for each in seen(s.webhooks)):
        return bad("no webhook of HAMi", "Install HAMi: without it its limits are not kept by anybody.")
    return ok("its webhook is there; that its limits hold is not proven by this")


CHECKS = (
    Check("gpu-nodes", "There is nothing to sell without cards that say what they are.", _has_cards),
    Check("operator", "It runs everything between a card and a pod.", _operator),
    Check("operator-ready", "Until then nodes come and go.", _operator_ready),
    Check("mig-strategy", "With `single` a slice looks like a whole card to quotas and to us.", _strategy),
    Check("cards", "Only what is understood is sold.", _readable),
    Check("devices-agree", "What the books sell the device plugin must give.", _agree),
    Check("sharing", "Replicas have no wall between them and must not be taken for cards.", _sharing),
    Check("resource-names", "Of two givers of one name nobody knows which card is meant.", _names_collide),
    Check("mig-layouts", "Nodes are only ever cut into what is legal for them.", _mig_configs),
    Check("mig-reads", "A node that is told a layout it never read fails, and is quarantined.", _mig_reads),
    Check("mig-state", "A node that is being cut gives nothing.", _wedged),
    Check("dra-driver", "Claims are allocated from what it publishes.", _dra),
    Check("device-classes", "Claims name them.", _classes),
    Check("hami", "It caps memory and compute of soft slices.", _hami),
)
