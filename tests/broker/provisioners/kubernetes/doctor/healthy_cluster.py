"""Snapshot of a healthy cluster."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from broker.provisioners.kubernetes.client.objects import ClusterNode, ObjectCondition, Taint
from broker.provisioners.kubernetes.doctor.snapshot import (
    ClusterCredentialInfo,
    ClusterSnapshot,
    ServerVersion,
)
from broker.provisioners.kubernetes.doctor.snapshot_collection import _rights_to_check
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.render import rbac
from tests.broker.domain.fleet import MODELS
from tests.controlplane.nodes import GpuNode

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
PLUGIN = DevicePluginDriver(MODELS)
GROUPS = frozenset(
    {
        "apps/v1",
        "batch/v1",
        "networking.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
        "coordination.k8s.io/v1",
        "resource.k8s.io/v1",
    }
)


def manifest(name: str, /, namespace: str = "", labels: dict[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, **rest}


def node(name: str = "gpu-1", what: GpuNode | None = None, *, ready: str = "True", **labels: str | None) -> ClusterNode:
    """Return a discovered node; a None label is removed."""
    made = msgspec.convert((what or GpuNode()).manifest(name), ClusterNode)
    made.status.conditions = [ObjectCondition(type="Ready", status=ready)]
    for label, value in labels.items():
        key = f"nvidia.com/{label.replace('__', '.')}"
        made.metadata.labels.pop(key, None)
        if value is not None:
            made.metadata.labels[key] = value
    return made


def plain_node(name: str = "plain") -> ClusterNode:
    """Return a node without GPUs."""
    made = node(name)
    made.metadata.labels = {key: value for key, value in made.metadata.labels.items() if "nvidia.com" not in key}
    made.status.allocatable = {"cpu": "8", "memory": "32Gi"}
    return made


def cordoned() -> ClusterNode:
    made = node()
    made.spec.unschedulable = True
    return made


def tainted(key: str, effect: str = "NoSchedule") -> ClusterNode:
    made = node()
    made.spec.taints = [Taint(key=key, effect=effect)]
    return made


def with_allocatable(**amounts: str) -> ClusterNode:
    """Return a node that reports these amounts beside its GPUs, and no others."""
    made = node()
    gpus = {name: amount for name, amount in made.status.allocatable.items() if "/" in name}
    made.status.allocatable = {**gpus, **amounts}
    return made


def exporter(*, ready: int = 1, **env: str) -> dict[str, Any]:
    values = {
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "true",
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "true",
        "KUBERNETES_VIRTUAL_GPUS": "true",
        **env,
    }
    box = {"env": [{"name": name, "value": value} for name, value in values.items()]}
    return manifest(
        "nvidia-dcgm-exporter",
        spec={"template": {"spec": {"containers": [box]}}},
        status={"desiredNumberScheduled": 1, "numberReady": ready},
    )


METRICS = manifest(
    "metrics",
    data={"list.csv": "# name, kind\nDCGM_FI_PROF_SM_ACTIVE, gauge, x\nDCGM_EXP_XID_ERRORS_COUNT, gauge, x\n"},
)
LAYOUTS = manifest(
    "gpu-1-mig-config",
    "gpu-operator",
    labels={"nvidia.com/node-name": "gpu-1"},
    data={"config.yaml": "version: v1"},
)
POLICY = manifest(
    "cluster-policy",
    spec={
        "devicePlugin": {"config": {"name": "plugin"}},
        "migManager": {"config": {"name": "gpubroker-mig"}},
    },
    status={"state": "ready"},
)
NODES = [node()]
WELL = ClusterSnapshot(
    driver="device_plugin",
    now=NOW,
    credential=ClusterCredentialInfo("token"),
    version=ServerVersion(git_version="v1.36.3"),
    skew=timedelta(seconds=0.2),
    round_trip=timedelta(milliseconds=4),
    uid="4f0c7d9a-0000",
    known_uid="4f0c7d9a-0000",
    groups=GROUPS,
    rights={right: right not in rbac.FORBIDDEN_RIGHTS for right in _rights_to_check()},
    namespaces=[manifest("gt-1", labels={"app.kubernetes.io/managed-by": "gpubroker"}, status={"phase": "Active"})],
    nodes=NODES,
    heartbeats={"gpu-1": NOW - timedelta(seconds=3)},
    inventory=PLUGIN.inventory(NODES, []),
    slices=[],
    pods=[],
    installed={
        "PriorityClass gpub-ondemand": True,
        "ValidatingAdmissionPolicy gpub-pods": True,
        "ValidatingAdmissionPolicyBinding gpub-pods": True,
        "CronJob gpubroker-reaper": True,
    },
    device_classes=[],
    cluster_policies=[POLICY],
    gpu_clusters=[],
    daemon_sets=[manifest("cilium"), exporter()],
    config_maps=[LAYOUTS, METRICS],
    storage_classes=[
        {"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    ],
    ingress_classes=[manifest("nginx")],
    webhooks=[],
    quotas=[manifest("gpub-hard", "gt-1", status={"hard": {"pods": "9"}})],
    pod_security=True,
    policies_refuse=True,
    ours={"l-1-g1": None},
    accounted=frozenset({"l-1-g1"}),
)


def with_nodes(*nodes: ClusterNode, **changes: Any) -> ClusterSnapshot:
    """Return the same cluster with other nodes."""
    heard = {each.metadata.name: NOW for each in nodes}
    return replace(WELL, nodes=nodes, inventory=PLUGIN.inventory(nodes, []), heartbeats=heard, **changes)
