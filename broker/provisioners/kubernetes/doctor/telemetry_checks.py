"""Checks of telemetry: whether the usage of a lease will be measured."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.gpu_checks import gpu_nodes
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, RawObject, require_readable
from broker.provisioners.kubernetes.drivers import gfd

REQUIRED_METRICS = ("DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_PROF_SM_ACTIVE")
POD_LABELS = ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID")
VIRTUAL_GPUS = "KUBERNETES_VIRTUAL_GPUS"
NO_EXPORTER = "See the check dcgm-exporter."


def find_exporters(s: ClusterSnapshot) -> list[RawObject]:
    return [each for each in require_readable(s.daemon_sets) if "dcgm-exporter" in each["metadata"]["name"]]


def daemon_set_containers(daemon_set: RawObject) -> list[Mapping[str, Any]]:
    return list(daemon_set.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []))


def container_environment(daemon_sets: Iterable[RawObject]) -> dict[str, str]:
    """Return the environment variables of the DaemonSets' containers."""
    every = (each for one in daemon_sets for box in daemon_set_containers(one) for each in box.get("env", []))
    return {each["name"]: str(each.get("value", "")) for each in every}


def _check_exporter(s: ClusterSnapshot) -> CheckResult:
    found = find_exporters(s)
    if not found:
        return warn(
            "no dcgm-exporter", "Enable dcgmExporter in the ClusterPolicy. Usage and health are unknown without it."
        )
    wanted, ready = (
        sum(each.get("status", {}).get(field, 0) for each in found)
        for field in ("desiredNumberScheduled", "numberReady")
    )
    if ready < wanted:
        return warn(
            f"ready on {ready} of {wanted} nodes", "Check the logs of its pods. It needs a matching DCGM version."
        )
    return ok(f"ready on {ready} nodes")


def _check_pod_labels(s: ClusterSnapshot) -> CheckResult:
    found = find_exporters(s)
    if not found:
        return unknown("no dcgm-exporter", NO_EXPORTER)
    environment = container_environment(found)
    if lacking := [name for name in POD_LABELS if environment.get(name, "").lower() != "true"]:
        return warn(
            f"not set: {list_some(lacking)}",
            r"Set them to true, with podLabelAllowlistRegex: ^gpubroker\.dev/.*$. Metrics then name their lease.",
        )
    return ok("metrics carry the pod's uid and the broker's labels")


def _check_metrics(s: ClusterSnapshot) -> CheckResult:
    found = find_exporters(s)
    if not found:
        return unknown("no dcgm-exporter", NO_EXPORTER)
    named = container_environment(found).get("DCGM_EXPORTER_COLLECTORS", "")
    texts = ["\n".join(each.get("data", {}).values()) for each in require_readable(s.config_maps)]
    metrics = "\n".join(text for text in texts if "DCGM_FI_" in text)
    if not metrics:
        return warn(
            f"the default list of metrics ({named or 'built in'})",
            f"Configure a list that includes {list_some(REQUIRED_METRICS)}, which SLOs are measured with.",
        )
    live = {line.split(",")[0].strip() for line in metrics.splitlines() if not line.lstrip().startswith("#")}
    if lacking := set(REQUIRED_METRICS) - live:
        return warn(f"not exported: {list_some(lacking)}", "Add them to the exporter's list of metrics.")
    return ok("all metrics that SLOs need are exported")


def _check_shared_metrics(s: ClusterSnapshot) -> CheckResult:
    shared = [
        node for node in gpu_nodes(s) if (found := gfd.read_gpu_labels(node.metadata.labels)) and found.replicas > 1
    ]
    if not shared or not find_exporters(s):
        return ok("not applicable")
    if container_environment(find_exporters(s)).get(VIRTUAL_GPUS, "").lower() != "true":
        return warn(f"{VIRTUAL_GPUS} is not set", "Set it to true. Otherwise only one pod of a shared GPU has metrics.")
    return ok("every pod of a shared GPU has metrics")


CHECKS = (
    ClusterCheck("dcgm-exporter", "It reports usage, energy and health of GPUs.", _check_exporter),
    ClusterCheck("dcgm-labels", "Metrics without a pod cannot be assigned to a lease.", _check_pod_labels),
    ClusterCheck("dcgm-metrics", "SLO credits need measurements as evidence.", _check_metrics),
    ClusterCheck("dcgm-sharing", "Each lease on a shared GPU needs its own metrics.", _check_shared_metrics),
)
