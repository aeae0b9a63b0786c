"""Resource claims whose devices differ from those of their lease."""

from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Cluster, ClusterObject, Node
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM
from broker.provisioners.kubernetes.client.objects import Raw
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.observed import claimed_placements
from broker.services.clusters.observed.observed_claims import NODES_PER_TURN
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, offering, reload_lease

Body = dict[str, Any]


class Scene:
    """A lease held by a claim, and what the agent observes of it."""

    def __init__(self, joined: Cluster, sim: Simulation, kestrel: TenantContext) -> None:
        self.sim, self.lease = sim, sim.create_lease(kestrel, offering())
        Node.objects.update(cluster=joined)
        Cluster.objects.exclude(pk=joined.pk).delete()
        Cluster.objects.update(driver="dra")
        self.agent, self.version = ClusterAgent(Cluster.objects.get()), 9
        with tenant_scope(self.lease.tenant_id):
            (self.place,) = load_provision_spec(reload_lease(self.lease)).slices
        self.publishes("own", self.place.uuid)
        self.publishes("other", "GPU-other")
        sim.messages.clear()

    def publishes(self, name: str, gpu: str) -> None:
        units = range(self.place.start, self.place.start + self.place.size)
        device = {
            "name": name,
            "attributes": {"parentUUID": {"string": gpu}},
            "capacity": {f"memorySlice{unit}": {"value": "1"} for unit in units},
        }
        ClusterObject.objects.create(
            cluster=Cluster.objects.get(),
            kind="ResourceSlice",
            name=f"s-{name}",
            uid=f"u-{name}",
            version=1,
            body={
                "metadata": {"name": f"s-{name}"},
                "spec": {"driver": DRA_DRIVER_NAME, "nodeName": self.place.host, "devices": [device]},
            },
            seen_at=self.sim.now,
        )

    def claim(self, *given: str, rank: int = 0, **marks: str) -> Body:
        self.version += 1
        mine = {
            labels.LEASE: self.lease.pk,
            labels.GENERATION: str(self.lease.generation),
            labels.TENANT: self.lease.tenant_id,
            **marks,
        }
        meta = {
            "name": names.resource_claim_name(self.lease.pk, self.lease.generation, rank),
            "namespace": "gt-1",
            "uid": f"u-{rank}",
            "resourceVersion": str(self.version),
            "labels": mine,
        }
        results = [{"driver": DRA_DRIVER_NAME, "pool": self.place.host, "device": each} for each in given]
        return {
            "metadata": meta,
            "status": {"allocation": {"devices": {"results": results}}} if given else {},
        }

    def hears(self, how: str, *claims: Body) -> int:
        """Let the agent find claims; return how often the lease was notified."""
        self.sim.messages.clear()
        items = [Raw(msgspec.json.encode(each)) for each in claims]
        self.agent.absorb([WatchEvent(RESOURCE_CLAIM, how, items, self.version)], now=self.sim.now)
        return [hint[3] for hint in self.sim.messages].count(self.lease.pk)

    @property
    def strange(self) -> str:
        return str(ClusterObject.objects.get(kind="ResourceClaim").body.get("strange", ""))


@pytest.fixture
def scene(agent: ClusterAgent, sim: Simulation, kestrel: TenantContext) -> Scene:
    return Scene(agent.cluster, sim, kestrel)


def test_a_claim_with_the_sold_device_notifies_no_lease(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.claim()) == 0
    assert scene.hears("MODIFIED", scene.claim("own")) == 0
    assert scene.hears("MODIFIED", scene.claim("own")) == 0
    assert scene.strange == ""
    kept = ClusterObject.objects.get(kind="ResourceClaim")
    assert kept.spec_name == spec_name(scene.lease.pk, scene.lease.generation)


def test_a_claim_with_another_device_is_reported_once_and_stored(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.claim()) == 0
    assert scene.hears("MODIFIED", scene.claim("other")) == 1
    assert scene.hears("MODIFIED", scene.claim("other")) == 0
    assert scene.strange == f"other of {scene.place.host}"


@pytest.mark.parametrize("how", ["devices removed", "exchanged", "deleted", "deleted unobserved"])
def test_a_tampered_claim_notifies_its_lease(scene: Scene, how: str) -> None:
    assert scene.hears("BEGUN") == scene.hears("PAGED", scene.claim("own")) == scene.hears("LISTED") == 0
    match how:
        case "devices removed":
            notified = scene.hears("MODIFIED", scene.claim())
        case "exchanged":
            notified = scene.hears("MODIFIED", scene.claim("other"))
        case "deleted":
            notified = scene.hears("DELETED", scene.claim("own"))
        case _:
            scene.version += 1
            notified = scene.hears("BEGUN") + scene.hears("LISTED")
    assert notified == 1


def test_a_quickly_recreated_claim_notifies_its_lease(scene: Scene) -> None:
    scene.hears("ADDED", scene.claim("own"))
    scene.sim.messages.clear()
    batch = [
        WatchEvent(RESOURCE_CLAIM, how, [Raw(msgspec.json.encode(scene.claim()))], scene.version)
        for how in ("DELETED", "ADDED")
    ]
    scene.agent.absorb(batch, now=scene.sim.now)
    assert [hint[3] for hint in scene.sim.messages] == [scene.lease.pk]


def test_a_new_list_does_not_report_a_known_claim_again(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.claim("other")) == 1
    another = ClusterAgent(scene.agent.cluster)
    scene.agent, scene.version = another, scene.version - 1
    again = scene.claim("other")
    assert scene.hears("BEGUN") == scene.hears("PAGED", again) == scene.hears("LISTED") == 0
    assert scene.strange == f"other of {scene.place.host}"


def test_a_claim_without_a_lease_or_published_device_notifies_no_lease(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.claim("unheard-of")) == 0
    assert scene.hears("ADDED", scene.claim("other", rank=7)) == 0
    assert scene.hears("ADDED", scene.claim("other", **{labels.LEASE: "lse_" + "9" * 26})) == 0


def test_a_deleted_claim_of_a_releasing_lease_notifies_nothing(scene: Scene) -> None:
    scene.hears("ADDED", scene.claim("own"))
    ClusterObject.objects.create(
        cluster=scene.agent.cluster,
        kind="Pod",
        namespace="gt-1",
        name="p",
        uid="u-p",
        version=1,
        spec_name=spec_name(scene.lease.pk, scene.lease.generation),
        body={"metadata": {"name": "p"}},
        seen_at=scene.sim.now,
    )
    scene.sim.release_lease(reload_lease(scene.lease))
    assert reload_lease(scene.lease).state == LeaseState.RELEASING
    assert scene.hears("DELETED", scene.claim("own")) == 0


class DynamicScene(Scene):
    """The same lease on a GPU whose devices state their memory slices as counters."""

    def publishes(self, name: str, gpu: str) -> None:
        """Publish a device before, and one after, the slice that was sold."""
        if name != "own":
            return
        devices = [self.device(f"at-{start}", gpu, start) for start in range(7)]
        ClusterObject.objects.create(
            cluster=Cluster.objects.get(),
            kind="ResourceSlice",
            name="s-own",
            uid="u-own",
            version=1,
            body={
                "metadata": {"name": "s-own"},
                "spec": {"driver": DRA_DRIVER_NAME, "nodeName": self.place.host, "devices": devices},
            },
            seen_at=self.sim.now,
        )

    @staticmethod
    def device(name: str, gpu: str, start: int) -> Body:
        counters = [{"counterSet": "gpu-0", "counters": {f"memory-slice-{start}": {"value": "1"}}}]
        attributes = {"parentUUID": {"string": gpu}, "profile": {"string": "1g.10gb"}}
        return {"name": name, "attributes": attributes, "consumesCounters": counters}

    @property
    def start(self) -> int:
        with tenant_scope(self.lease.tenant_id):
            return int(Allocation.objects.get(lease=self.lease, released_at=None).placement.lower)


@pytest.fixture
def dynamic(agent: ClusterAgent, sim: Simulation, kestrel: TenantContext) -> DynamicScene:
    return DynamicScene(agent.cluster, sim, kestrel)


def test_a_placement_follows_the_device_of_its_claim(dynamic: DynamicScene) -> None:
    assert dynamic.hears("ADDED", dynamic.claim()) == 0
    before = dynamic.start
    assert dynamic.hears("MODIFIED", dynamic.claim("at-5")) == 0
    assert (before, dynamic.start, dynamic.strange) == (0, 5, "")


def test_placements_wait_for_a_complete_list_of_claims(dynamic: DynamicScene) -> None:
    dynamic.hears("BEGUN")
    dynamic.hears("PAGED", dynamic.claim("at-5"))
    assert dynamic.start == 0
    dynamic.hears("LISTED")
    assert dynamic.start == 5


def test_placements_that_could_not_follow_are_tried_again(
    dynamic: DynamicScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False, True])
    tried: list[str] = []
    monkeypatch.setattr(
        claimed_placements, "settle_node", lambda cluster, node, *, now: tried.append(node) is None and next(answers)
    )
    dynamic.hears("ADDED", dynamic.claim("at-5"))
    dynamic.agent.absorb([], now=dynamic.sim.now)
    assert len(tried) == 1
    monkeypatch.setattr(dynamic.agent, "sees_all", lambda: True)
    for _ in range(2):
        dynamic.agent._check_changes()
        dynamic.agent.absorb([], now=dynamic.sim.now)
    assert tried == [dynamic.place.host] * 2


def test_placements_of_many_nodes_follow_in_several_turns(
    dynamic: DynamicScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(claimed_placements, "settle_node", lambda cluster, node, *, now: tried.append(node) is None)
    claim = dynamic.claim()
    pools = [f"n{number:02}" for number in range(NODES_PER_TURN + 2)]
    results = [{"driver": DRA_DRIVER_NAME, "pool": pool, "device": "at-5"} for pool in pools]
    claim["status"] = {"allocation": {"devices": {"results": results}}}
    dynamic.hears("ADDED", claim)
    assert tried == pools[:NODES_PER_TURN]
    dynamic.agent.absorb([], now=dynamic.sim.now)
    assert tried == pools


def test_only_dra_clusters_without_extended_resources_watch_resource_claims(agent: ClusterAgent) -> None:
    def followed() -> bool:
        return RESOURCE_CLAIM in {each.kind for each in ClusterAgent(Cluster.objects.get()).reflectors}

    assert not followed()
    Cluster.objects.update(driver="dra")
    assert followed()
    Cluster.objects.update(driver_options={"extended": True})
    assert not followed()
