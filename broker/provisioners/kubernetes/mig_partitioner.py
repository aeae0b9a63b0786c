"""Repartition nodes through NVIDIA's mig-manager.

One node label sets the wanted layout, another reports progress. Nodes know layouts by name from one
ConfigMap, which the operator's ClusterPolicy must reference. Kubelets deliver a changed ConfigMap to
their pods within about two minutes; a node that is set to a name it does not know yet fails.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import structlog

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.mig_configs import (
    layout_alias,
    layout_name,
    max_slices_per_gpu,
    mig_config,
    profile_of_resource,
)
from broker.domain.repartition.repartition_steps import ObservedLayout
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal, ObjectConflict, ObjectMissing
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, NODE, POD, ObjectRef
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from broker.provisioners.kubernetes.cluster_connection import connect_to_cluster
from broker.provisioners.kubernetes.labels import (
    LAYOUT_CONFIG_MAP,
    MANAGED_BY,
    MANAGER_NAME,
    NODE_NAME_LABEL,
    OPERATOR_NAMESPACE,
    REPARTITION_TAINT,
)
from broker.provisioners.node_partitioner import PartitionedNode

log = structlog.get_logger(__name__)
MIG_CONFIG, MIG_CONFIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
# Selects the ConfigMaps mig-manager wrote: the legal layouts of a node.
MIG_MANAGER_SELECTOR = "app.kubernetes.io/component=nvidia-mig-manager"
CONFIG_KEY, LEARNED_KEY = "config.yaml", "learned.json"  # the operator reads the first, we read the second
PROPAGATION_TIME = timedelta(minutes=2)
MANAGER = "gpubroker-mig"
FINAL_PHASES = ("Succeeded", "Failed")
MAX_ATTEMPTS = 5


class _SliceContainer(objects.ApiStruct):
    resources: dict[str, dict[str, Any] | list[Any]] = {}


class _SlicePodSpec(objects.ApiStruct):
    containers: list[_SliceContainer] = []
    resource_claims: list[Any] = []


class _SlicePod(objects.ApiStruct):
    """The fields that tell whether a pod, ours or not, holds a slice."""

    spec: _SlicePodSpec = msgspec.field(default_factory=_SlicePodSpec)
    status: objects.PodStatus = msgspec.field(default_factory=objects.PodStatus)

    @property
    def holds(self) -> bool:
        limits = (container.resources.get("limits") or {} for container in self.spec.containers)
        requests_gpu = any(str(name).startswith("nvidia.com/") for each in limits for name in each)
        return self.status.phase not in FINAL_PHASES and (requests_gpu or bool(self.spec.resource_claims))


class _TaintsSpec(objects.ApiStruct):
    taints: list[dict[str, Any]] = []  # raw, so that unknown fields are kept


class _TaintedNode(objects.ApiStruct):
    metadata: objects.FullObjectMeta
    spec: _TaintsSpec = msgspec.field(default_factory=_TaintsSpec)


class _ConfigMap(objects.ApiStruct):
    metadata: objects.FullObjectMeta
    data: dict[str, str] = {}


class MigManagerPartitioner:
    """Repartitions nodes of every cluster by the cluster's own transport."""

    def __init__(
        self, *, transport_of: Callable[[str], Transport] | None = None, learns_within: timedelta = PROPAGATION_TIME
    ) -> None:
        self._transport_to, self._learns_within = cache(transport_of or _transport_of), learns_within

    def profiles(self, machines: Sequence[PartitionedNode]) -> dict[str, dict[str, int] | None]:
        with self._asking(machines[0]) as api:
            items, _ = api.list_all(
                CONFIG_MAP, namespace=OPERATOR_NAMESPACE, labels=f"{MIG_MANAGER_SELECTOR},{NODE_NAME_LABEL}"
            )
        ids, found = {machine.name: machine.id for machine in machines}, dict[str, dict[str, int] | None]()
        for config_map in (objects.decode(item, _ConfigMap) for item in items):
            name = config_map.metadata.labels.get(NODE_NAME_LABEL, "")
            if name in ids and (most := _node_limits(name, config_map.data.get(CONFIG_KEY, ""))):
                found[ids[name]] = most
        return found

    def observe(self, machine: PartitionedNode, *, now: datetime) -> ObservedLayout:
        with self._asking(machine) as api:
            body = api.get(ObjectRef(NODE, machine.name))
            if body is None:
                return ObservedLayout(exists=False)
            pods, _ = api.list_all(POD, fields=f"spec.nodeName={machine.name}")
        node = objects.decode(body, objects.ClusterNode)
        offers = {
            profile_of_resource(name): int(count) for name, count in node.status.allocatable.items() if _is_slice(name)
        }
        return ObservedLayout(
            config=node.metadata.labels.get(MIG_CONFIG, ""),
            state=node.metadata.labels.get(MIG_CONFIG_STATE, ""),
            version=node.metadata.resource_version,
            tainted=any(taint.key == REPARTITION_TAINT for taint in node.spec.taints),
            pods=sum(objects.decode(pod, _SlicePod).holds for pod in pods),
            slots={profile: count for profile, count in offers.items() if profile and count},
        )

    def prepare(self, machine: PartitionedNode, cuts: Mapping[int, GpuLayout], *, now: datetime) -> timedelta:
        name = layout_name(cuts)
        with self._asking(machine) as api:
            for _ in range(MAX_ATTEMPTS):
                with suppress(ObjectConflict):
                    learned = self._publish(api, name, mig_config(cuts), now)
                    return max(learned + self._learns_within - now, timedelta())
        raise ClusterUnreachable(f"the ConfigMap {LAYOUT_CONFIG_MAP} changes too often to be updated")

    def _publish(self, api: KubernetesApi, name: str, config: list[dict[str, Any]], now: datetime) -> datetime:
        """Add a layout to the ConfigMap, keeping the others; return when it was added."""
        ref = ObjectRef(CONFIG_MAP, LAYOUT_CONFIG_MAP, OPERATOR_NAMESPACE)
        body = api.get(ref)
        known = objects.decode(body, _ConfigMap) if body else _ConfigMap(metadata=objects.FullObjectMeta())
        document = msgspec.yaml.decode(known.data.get(CONFIG_KEY) or "{}", type=dict[str, Any])
        learned: dict[str, str] = msgspec.json.decode(known.data.get(LEARNED_KEY) or "{}", type=dict[str, str])
        configs = document.get("mig-configs") or {}
        if configs.get(name) == config and name in learned:
            return datetime.fromisoformat(learned[name])
        document = {"version": "v1", "mig-configs": {**configs, name: config, layout_alias(name): config}}
        learned[name] = now.isoformat()
        data = {CONFIG_KEY: msgspec.yaml.encode(document).decode(), LEARNED_KEY: msgspec.json.encode(learned).decode()}
        meta = {"name": LAYOUT_CONFIG_MAP, "namespace": OPERATOR_NAMESPACE, "labels": {MANAGED_BY: MANAGER_NAME}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        if body is None:
            api.create(manifest, manager=MANAGER)
        else:
            version = {"resourceVersion": known.metadata.resource_version}
            api.merge(ref, {"metadata": version, "data": data}, manager=MANAGER)
        return now

    def taint(self, machine: PartitionedNode, *, on: bool) -> None:
        ref = ObjectRef(NODE, machine.name)
        with self._asking(machine) as api:
            for _ in range(MAX_ATTEMPTS):
                body = api.get(ref)
                if body is None:
                    return  # the node is gone, and its taints with it
                node = objects.decode(body, _TaintedNode)
                others = [taint for taint in node.spec.taints if taint.get("key") != REPARTITION_TAINT]
                wanted = [*others, {"key": REPARTITION_TAINT, "effect": "NoSchedule"}] if on else others
                if wanted == node.spec.taints:
                    return
                version = {"resourceVersion": node.metadata.resource_version}
                with suppress(ObjectConflict):
                    api.merge(ref, {"metadata": version, "spec": {"taints": wanted}}, manager=MANAGER)
                    return
        raise ClusterUnreachable(f"node {machine.name} changes too often to be tainted")

    def apply_config(self, machine: PartitionedNode, config: str, *, version: str, now: datetime) -> bool:
        # Clear the state of the last layout, so that any later state is about this one.
        labels = {MIG_CONFIG: config, MIG_CONFIG_STATE: None}
        patch = {"metadata": {"resourceVersion": version, "labels": labels}}
        with self._asking(machine) as api:
            try:
                api.merge(ObjectRef(NODE, machine.name), patch, manager=MANAGER)
            except (ObjectConflict, ObjectMissing):
                return False
        return True

    @contextmanager
    def _asking(self, machine: PartitionedNode) -> Iterator[KubernetesApi]:
        """Open the API of a node's cluster; a refusal is raised as ClusterUnreachable.

        After a refusal no more is known of the node than before.
        """
        try:
            yield self._transport_to(machine.cluster).within()
        except ApiRefusal as refused:
            raise ClusterUnreachable(str(refused)) from refused


def _node_limits(node: str, document: str) -> dict[str, int] | None:
    """Read a node's limits from its document; None if it cannot be read."""
    try:
        return max_slices_per_gpu(msgspec.yaml.decode(document, type=dict[str, Any]))
    except (ValueError, msgspec.MsgspecError) as error:
        log.warning("the layouts that a node supports cannot be read", node=node, why=str(error))
        return None


def _transport_of(cluster_id: str) -> Transport:
    return connect_to_cluster(cluster_id).transport


def _is_slice(resource: str) -> bool:
    return profile_of_resource(resource) is not None
