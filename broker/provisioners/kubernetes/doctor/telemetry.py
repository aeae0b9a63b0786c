"""Will we know what a lease uses?"""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.provisioners.kubernetes.doctor.cards import gpu_nodes
from broker.provisioners.kubernetes.doctor.findings import Answer, Check, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, Thing, seen
from broker.provisioners.kubernetes.drivers import gfd

EVIDENCE = ("DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_PROF_SM_ACTIVE")
POD_LABELS = ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID")
VIRTUAL = "KUBERNETES_VIRTUAL_GPUS"
NO_EXPORTER = "See dcgm-exporter."


def exporters(s: Snapshot) -> list[Thing]:
    return [each for each in seen(s.daemon_sets) if "dcgm-exporter" in each["metadata"]["name"]]


def containers(daemon_set: Thing) -> list[Mapping[str, Any]]:
    return list(daemon_set.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []))


def environment(daemon_sets: Iterable[Thing]) -> dict[str, str]:
    """Return what their containers are told by variables."""
    every = (each for one in daemon_sets for box in containers(one) for each in box.get("env", []))
    return {each["name"]: str(each.get("value", "")) for each in every}


def _runs(s: Snapshot) -> Answer:
    found = exporters(s)
    if not found:
        return warn(
            "no dcgm-exporter", "Enable dcgmExporter in the ClusterPolicy: use and health stay unknown."
        )
    wanted, ready = (
        sum(each.get("status", {}).get(field, 0) for each in found)
        for field in ("desiredNumberScheduled", "numberReady")
    )
    if ready < wanted:
        return warn(
            f"ready on {ready} of {wanted} nodes", "Look at its pods' logs; it needs DCGM of a like version."
        )
    return ok(f"ready on {ready} nodes")


def _labels(s: Snapshot) -> Answer:
    found = exporters(s)
    if not found:
        return unknown("no dcgm-exporter", NO_EXPORTER)
    said = environment(found)
    if lacking := [name for name in POD_LABELS if said.get(name, "").lower() != "true"]:
        return warn(
            f"not set: {names(lacking)}",
            r"Set them to true, with podLabelAllowlistRegex: ^gpubroker\.dev/.*$, so that figures find their lease.",
        )
    return ok("figures carry the pod's uid and our labels")


def _metrics(s: Snapshot) -> Answer:
    found = exporters(s)
    if not found:
        return unknown("no dcgm-exporter", NO_EXPORTER)
    named = environment(found).get("DCGM_EXPORTER_COLLECTORS", "")
    texts = ["\n".join(each.get("data", {}).values()) for each in seen(s.config_maps)]
    metrics = "\n".join(text for text in texts if "DCGM_FI_" in text)
    if not metrics:
        return warn(
            f"the default list of metrics ({named or 'built in'})",
            f"Give it a list of its own with {names(EVIDENCE)}: evidence for what is promised.",
        )
    live = {line.split(",")[0].strip() for line in metrics.splitlines() if not line.lstrip().startswith("#")}
    if lacking := set(EVIDENCE) - live:
        return warn(f"not exported: {names(lacking)}", "Add them to the exporter's list of metrics.")
    return ok("with the evidence for what is promised")


def _shared(s: Snapshot) -> Answer:
    shared = [
        node for node in gpu_nodes(s) if (found := gfd.read(node.metadata.labels)) and found.replicas > 1
    ]
    if not shared or not exporters(s):
        return ok("of no matter here")
    if environment(exporters(s)).get(VIRTUAL, "").lower() != "true":
        return warn(
            f"{VIRTUAL} is not set", "Set it to true: else only one pod of a shared card has figures."
        )
    return ok("every pod of a shared card has figures")


CHECKS = (
    Check("dcgm-exporter", "Use, energy and health of cards come from it.", _runs),
    Check("dcgm-labels", "A figure that names no pod belongs to no lease.", _labels),
    Check("dcgm-metrics", "Credit for broken promises needs evidence.", _metrics),
    Check("dcgm-sharing", "Each lease on a shared card wants its own figures.", _shared),
)
