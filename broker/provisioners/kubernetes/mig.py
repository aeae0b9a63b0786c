"""Cutting a node anew through NVIDIA's mig-manager: a label says what is wanted, another one how far it is.

A layout is known to the nodes by a name in one ConfigMap, which the operator's ClusterPolicy must point at. Kubelets
bring a changed ConfigMap to their pods within some two minutes; a node that is told a name it has not learned fails.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import structlog

from broker.domain.cuts import Cut
from broker.domain.mig_configs import alias_of, config_of, most_per_card, name_of, profile_of
from broker.domain.repartition import NodeSeen
from broker.provisioners.base import Unanswered
from broker.provisioners.hands import Machine
from broker.provisioners.kubernetes import objects
from broker.provisioners.kubernetes.cluster import way_into
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, NODE, POD, Ref
from broker.provisioners.kubernetes.labels import LAYOUTS, MANAGED_BY, OF_NODE, OPERATOR, REPARTITION, US
from broker.provisioners.kubernetes.refusals import Conflict, Missing, Refusal
from broker.provisioners.kubernetes.transport import Api, Transport

log = structlog.get_logger(__name__)
WANTED, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
TELLS = "app.kubernetes.io/component=nvidia-mig-manager"  # what it wrote itself: the legal layouts of a node
DOCUMENT, LEARNED = "config.yaml", "learned.json"  # the operator reads the first, we the second
LEARNS_WITHIN = timedelta(minutes=2)
MANAGER = "gpubroker-mig"
OVER = ("Succeeded", "Failed")
TRIES = 5


class _Container(objects.Struct):
    resources: dict[str, dict[str, Any] | list[Any]] = {}


class _Spec(objects.Struct):
    containers: list[_Container] = []
    resource_claims: list[Any] = []


class _Pod(objects.Struct):
    """What tells whether a pod holds a slice of its node, whoever's pod it is."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: objects.PodStatus = msgspec.field(default_factory=objects.PodStatus)

    @property
    def holds(self) -> bool:
        limits = (container.resources.get("limits") or {} for container in self.spec.containers)
        asks = any(str(name).startswith("nvidia.com/") for each in limits for name in each)
        return self.status.phase not in OVER and (asks or bool(self.spec.resource_claims))


class _RawSpec(objects.Struct):
    taints: list[dict[str, Any]] = []  # as they are: what we do not know of them must stay


class _Tainted(objects.Struct):
    metadata: objects.Meta
    spec: _RawSpec = msgspec.field(default_factory=_RawSpec)


class _Map(objects.Struct):
    metadata: objects.Meta
    data: dict[str, str] = {}


class KubernetesHands:
    """Reaches the nodes of every cluster by its own transport."""

    def __init__(
        self, *, way: Callable[[str], Transport] | None = None, learns_within: timedelta = LEARNS_WITHIN
    ) -> None:
        self._way, self._learns_within = cache(way or _way), learns_within

    def profiles(self, machines: Sequence[Machine]) -> dict[str, dict[str, int] | None]:
        with self._asking(machines[0]) as api:
            items, _ = api.list_all(CONFIG_MAP, namespace=OPERATOR, labels=f"{TELLS},{OF_NODE}")
        ids, found = {machine.name: machine.id for machine in machines}, dict[str, dict[str, int] | None]()
        for told in (objects.read(item, _Map) for item in items):
            name = told.metadata.labels.get(OF_NODE, "")
            if name in ids and (most := _most(name, told.data.get(DOCUMENT, ""))):
                found[ids[name]] = most
        return found

    def look(self, machine: Machine, *, now: datetime) -> NodeSeen:
        with self._asking(machine) as api:
            body = api.get(Ref(NODE, machine.name))
            if body is None:
                return NodeSeen(there=False)
            pods, _ = api.list_all(POD, fields=f"spec.nodeName={machine.name}")
        node = objects.read(body, objects.Node)
        offers = {
            profile_of(name): int(count) for name, count in node.status.allocatable.items() if _is_slice(name)
        }
        return NodeSeen(
            config=node.metadata.labels.get(WANTED, ""),
            state=node.metadata.labels.get(STATE, ""),
            version=node.metadata.resource_version,
            tainted=any(taint.key == REPARTITION for taint in node.spec.taints),
            pods=sum(objects.read(pod, _Pod).holds for pod in pods),
            slots={profile: count for profile, count in offers.items() if profile and count},
        )

    def prepare(self, machine: Machine, cuts: Mapping[int, Cut], *, now: datetime) -> timedelta:
        name = name_of(cuts)
        with self._asking(machine) as api:
            for _ in range(TRIES):
                with suppress(Conflict):
                    learned = self._publish(api, name, config_of(cuts), now)
                    return max(learned + self._learns_within - now, timedelta())
        raise Unanswered(f"the ConfigMap {LAYOUTS} changes faster than we can write it")

    def _publish(self, api: Api, name: str, config: list[dict[str, Any]], now: datetime) -> datetime:
        """Add a layout to those that nodes know, beside all that is there; return since when it is there."""
        ref = Ref(CONFIG_MAP, LAYOUTS, OPERATOR)
        body = api.get(ref)
        known = objects.read(body, _Map) if body else _Map(metadata=objects.Meta())
        document = msgspec.yaml.decode(known.data.get(DOCUMENT) or "{}", type=dict[str, Any])
        learned: dict[str, str] = msgspec.json.decode(known.data.get(LEARNED) or "{}", type=dict[str, str])
        configs = document.get("mig-configs") or {}
        if configs.get(name) == config and name in learned:
            return datetime.fromisoformat(learned[name])
        document = {"version": "v1", "mig-configs": {**configs, name: config, alias_of(name): config}}
        learned[name] = now.isoformat()
        data = {
            DOCUMENT: msgspec.yaml.encode(document).decode(),
            LEARNED: msgspec.json.encode(learned).decode(),
        }
        meta = {"name": LAYOUTS, "namespace": OPERATOR, "labels": {MANAGED_BY: US}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        if body is None:
            api.create(manifest, manager=MANAGER)
        else:
            version = {"resourceVersion": known.metadata.resource_version}
            api.merge(ref, {"metadata": version, "data": data}, manager=MANAGER)
        return now

    def taint(self, machine: Machine, *, on: bool) -> None:
        ref = Ref(NODE, machine.name)
        with self._asking(machine) as api:
            for _ in range(TRIES):
                body = api.get(ref)
                if body is None:
                    return  # gone, and its taints with it
                node = objects.read(body, _Tainted)
                others = [taint for taint in node.spec.taints if taint.get("key") != REPARTITION]
                wanted = [*others, {"key": REPARTITION, "effect": "NoSchedule"}] if on else others
                if wanted == node.spec.taints:
                    return
                version = {"resourceVersion": node.metadata.resource_version}
                with suppress(Conflict):
                    api.merge(ref, {"metadata": version, "spec": {"taints": wanted}}, manager=MANAGER)
                    return
        raise Unanswered(f"node {machine.name} changes faster than it can be tainted")

    def tell(self, machine: Machine, config: str, *, version: str, now: datetime) -> bool:
        # Its word on the last layout goes with it, so that whatever it says from now on is about this one.
        labels = {WANTED: config, STATE: None}
        patch = {"metadata": {"resourceVersion": version, "labels": labels}}
        with self._asking(machine) as api:
            try:
                api.merge(Ref(NODE, machine.name), patch, manager=MANAGER)
            except (Conflict, Missing):
                return False
        return True

    @contextmanager
    def _asking(self, machine: Machine) -> Iterator[Api]:
        """Speak to a node's cluster; whatever it refuses, nobody knows more of the node than before."""
        try:
            yield self._way(machine.cluster).within()
        except Refusal as refused:
            raise Unanswered(str(refused)) from refused


def _most(node: str, document: str) -> dict[str, int] | None:
    """Read what a node says it can become; None for what cannot be read, as if it said nothing."""
    try:
        return most_per_card(msgspec.yaml.decode(document, type=dict[str, Any]))
    except (ValueError, msgspec.MsgspecError) as error:
        log.warning("what a node says it can become cannot be read", node=node, why=str(error))
        return None


def _way(cluster_id: str) -> Transport:
    return way_into(cluster_id).transport


def _is_slice(resource: str) -> bool:
    return profile_of(resource) is not None
