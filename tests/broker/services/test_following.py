"""What an agent does with what it hears, without a cluster: rows, rings, lost nodes, inventory."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connections

from broker.management.commands.kube_agent import _named
from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu, Node
from broker.provisioners.kubernetes import cluster as clusters
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, NODE, POD, Kind
from broker.provisioners.kubernetes.objects import Meta, Raw, Thing
from broker.provisioners.kubernetes.pulse import BEATS
from broker.provisioners.kubernetes.sink import Found
from broker.services import catalogue, following, freezing, joining
from broker.services.following import CLASSES, FOLLOWED, SLICES, Agent
from ports import clock
from tests.broker.provisioners.kubernetes.conftest import serve as serve
from tests.broker.provisioners.kubernetes.wire import Say, Serve, Wire, refused
from tests.world import NOW, OPERATOR, Life, cards

WAY = {
    "clusters": [{"name": "cluster", "cluster": {"server": "https://one.example"}}],
    "users": [{"name": "cluster", "user": {"token": "t"}}],
}


@pytest.fixture
def agent(life: Life, settings: Any) -> Iterator[Agent]:
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    catalogue.load_gpu_models()
    joined = joining.join(
        name="east", region="eu-north", kubeconfig=WAY, driver="device_plugin", actor=OPERATOR, now=life.now
    )
    yield Agent(joined)
    with connections[
        "default"
    ].cursor() as cursor:  # a lead lasts as long as its session, and that is the next test's
        cursor.execute("SELECT pg_advisory_unlock_all()")


def node(name: str = "n01", ready: str = "True", version: int = 3, **allocatable: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"u-{name}",
            "resourceVersion": str(version),
            "labels": {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "1",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/mig.strategy": "mixed",
            },
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def found(kind: Kind, how: str, *objects: dict[str, Any], version: int = 9) -> Found:
    return Found(kind, how, [Raw(msgspec.json.encode(each)) for each in objects], version)


def pod(version: int = 5) -> dict[str, Any]:
    marks = {"gpubroker.dev/lease": "lse_1", "gpubroker.dev/tenant": "ten_1", "gpubroker.dev/generation": "2"}
    meta = {"name": "p", "namespace": "gt-1", "uid": "u", "resourceVersion": str(version), "labels": marks}
    return {"metadata": meta, "status": {"phase": "Running"}}


def test_changes_around_a_list_are_kept_in_order(agent: Agent, life: Life) -> None:
    batch = [
        found(POD, "ADDED", pod(5), version=5),
        found(POD, "BEGUN"),
        found(POD, "LISTED", version=6),
        found(POD, "ADDED", pod(8), version=8),
        found(POD, "HEARD", version=12),
    ]
    agent.absorb(batch, now=life.now)
    kept = ClusterObject.objects.get()
    assert (kept.order_name, kept.version, kept.body["status"]["phase"]) == ("l-1-g2", 8, "Running")
    assert ClusterWatch.objects.get().version == 12
    agent.absorb([found(POD, "DELETED", pod(13), version=13)], now=life.now)
    assert not ClusterObject.objects.exists()


def test_what_changes_in_nothing_that_is_read_is_neither_written_nor_told(agent: Agent, life: Life) -> None:
    def seen(how: str, version: int, **more: Any) -> tuple[int, str]:
        agent.absorb([found(POD, how, {**pod(version), **more}, version=version)], now=life.now)
        kept = ClusterObject.objects.get()
        return kept.version, kept.body["status"]["phase"]

    assert seen("ADDED", 5) == (5, "Running")
    assert seen("MODIFIED", 6) == (5, "Running")  # somebody annotated it
    assert ClusterWatch.objects.get().version == 6
    assert seen("MODIFIED", 7, status={"phase": "Failed"}) == (7, "Failed")
    agent.absorb([found(POD, "DELETED", pod(8), version=8)], now=life.now)
    assert seen("ADDED", 9, status={"phase": "Failed"}) == (9, "Failed")


def test_a_pod_that_writes_a_nul_is_kept_without_it(agent: Agent, life: Life) -> None:
    """PostgreSQL keeps none in its JSON: one pod's last words would blind us to all the others."""
    words, kept = "over\0 \\u0000", "over \\u0000"
    said = {"message": words}
    state = {"state": {"terminated": said}, "lastState": {"waiting": said}}
    status = {"phase": "Failed", **said, "conditions": [said], "containerStatuses": [state]}
    agent.absorb([found(POD, "ADDED", {**pod(5), "status": status}, version=5)], now=life.now)
    seen = ClusterObject.objects.get().body["status"]
    (container,) = seen["containerStatuses"]
    assert seen["message"] == seen["conditions"][0]["message"] == kept
    assert container["state"]["terminated"]["message"] == container["lastState"]["waiting"]["message"] == kept


def test_a_list_of_what_is_known_already_is_not_written_again(agent: Agent, life: Life) -> None:
    def listed(version: int, *there: dict[str, Any]) -> dict[str, int]:
        begun, paged = found(POD, "BEGUN"), found(POD, "PAGED", *there, version=version)
        agent.absorb([begun, paged, found(POD, "LISTED", version=version)], now=life.now)
        return dict(ClusterObject.objects.values_list("name", "version"))

    other = {**pod(5), "metadata": {**pod(5)["metadata"], "name": "q"}}
    assert listed(5, pod(5), other) == {"p": 5, "q": 5}
    assert listed(7, pod(6)) == {"p": 5}
    assert listed(9, pod(6), other) == {"p": 5, "q": 5}  # it went and came back


def test_a_node_that_falls_silent_or_is_deleted_is_lost_until_it_is_heard(agent: Agent, life: Life) -> None:
    cards(1)
    Node.objects.update(cluster=agent.cluster)

    def state(*batch: Found) -> str:
        agent.absorb(batch, now=life.now)
        return Node.objects.get().state

    assert state(found(NODE, "BEGUN"), found(NODE, "PAGED", node()), found(NODE, "LISTED")) == "ready"
    assert state(found(NODE, "MODIFIED", node(ready="Unknown", version=10))) == "lost"
    agent._bring_back(life.now)
    assert Node.objects.get().state == "lost"
    ClusterObject.objects.update(body=node())
    agent._bring_back(life.now)
    assert Node.objects.get().state == "ready"
    assert state(found(NODE, "DELETED", node(version=11))) == "lost"
    assert state(found(NODE, "ADDED", node(version=12))) == "ready"


def listing(*objects: dict[str, Any]) -> Say:
    return Say(body={"metadata": {"resourceVersion": "5"}, "items": list(objects)})


def through(agent: Agent, serve: Serve, *script: Say) -> Wire:
    """Let the agent speak to a server that answers from a script."""
    wire = serve(*script)
    agent.way = clusters.Way(wire.transport, agent.way.driver)
    return wire


def nodes(*there: dict[str, Any]) -> list[Found]:
    return [found(NODE, "BEGUN"), found(NODE, "PAGED", *there), found(NODE, "LISTED")]


def test_inventory_is_taken_from_the_rows_once_they_are_there(agent: Agent, serve: Serve, life: Life) -> None:
    wire = through(agent, serve)
    agent.turn(0)
    assert not Gpu.objects.exists()
    agent.absorb(nodes(node()), now=life.now)
    agent.turn(0)
    assert Gpu.objects.get().node.name == "n01"
    assert wire.asked == []  # the watch has told it all


def test_an_inventory_in_which_nothing_is_new_is_not_taken_again(
    agent: Agent, serve: Serve, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(agent, serve)
    taken: list[int] = []
    monkeypatch.setattr(joining, "take_inventory", lambda cluster, found, now: taken.append(len(found)) or [])

    def take(*there: dict[str, Any]) -> int:
        agent.absorb(nodes(*there), now=life.now)
        agent._take_inventory(life.now)
        return len(taken)

    assert take(node()) == 1
    assert take(node(version=4)) == 1
    assert take(node(version=5), node("n02")) == 2
    Cluster.objects.update(halted="It reports only 1 of 9 cards.")
    assert take(node(version=6), node("n02")) == 3
    Cluster.objects.update(halted="")
    agent._take_again_at = 0
    assert take(node(version=7), node("n02")) == 4


def test_what_is_not_for_sale_is_said(agent: Agent, serve: Serve, life: Life) -> None:
    strange = node()
    strange["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-Z9"
    through(agent, serve)
    agent.absorb(nodes(strange), now=life.now)
    agent.turn(0)
    assert not Gpu.objects.exists()


def test_without_a_pulse_the_cluster_is_asked_who_it_is_and_its_silence_keeps_the_inventory(
    agent: Agent, serve: Serve, life: Life
) -> None:
    through(agent, serve)
    agent.absorb(nodes(node()), now=life.now)
    agent.turn(0)
    Cluster.objects.update(uid="uid-1")
    through(agent, serve, refused(403, "forbidden"))
    agent.absorb(nodes(), now=life.now)
    agent._uid, agent._inventory_at = "uid-1", 0
    agent.turn(0)
    assert Gpu.objects.get().health == "healthy"
    assert not agent.frozen
    kube_system = {"metadata": {"name": "kube-system", "uid": "uid-2"}}
    through(agent, serve, listing(kube_system))
    agent._take_inventory(life.now)
    assert agent.frozen


def published(version: int, *cards: str) -> dict[str, Any]:
    """Return what the DRA driver of n01 says it has."""
    devices = [
        {
            "name": name,
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": f"GPU-{name}"},
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        }
        for name in cards
    ]
    meta = {"name": "slice-n01", "uid": "u-slice", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n01", "devices": devices}}


def test_a_driver_of_claims_is_told_what_nodes_publish_and_asks_for_nothing(
    agent: Agent, serve: Serve, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SLICES not in {each.kind for each in agent.reflectors}
    Cluster.objects.update(driver="dra")
    claims = Agent(Cluster.objects.get())
    assert SLICES in {each.kind for each in claims.reflectors}
    wire = serve()
    claims.way = clusters.Way(wire.transport, claims.way.driver)
    monkeypatch.setattr(following, "SOON_S", 0.0)

    def cards(*batch: Found) -> list[str]:
        claims.absorb(batch, now=life.now)
        claims.turn(0)
        return list(Gpu.objects.order_by("index").values_list("uuid", flat=True))

    assert cards(*nodes(node())) == []  # their cards are yet to be listed
    listed = [found(SLICES, "BEGUN"), found(SLICES, "PAGED", published(4, "gpu-0")), found(SLICES, "LISTED")]
    assert cards(*listed) == ["GPU-gpu-0"]
    assert cards(found(SLICES, "MODIFIED", published(12, "gpu-0", "gpu-1"), version=12)) == [
        "GPU-gpu-0",
        "GPU-gpu-1",
    ]
    cards(found(SLICES, "DELETED", published(13, "gpu-0", "gpu-1"), version=13))
    assert set(Gpu.objects.values_list("health", flat=True)) == {"unhealthy"}
    assert wire.asked == []


def a_class(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def test_what_has_no_device_class_is_not_for_sale_until_it_has_one(
    agent: Agent, serve: Serve, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody may list them, as with rights that are older than this, they are taken to be there."""
    Cluster.objects.update(driver="dra")
    claims = Agent(Cluster.objects.get())
    claims.way = clusters.Way(serve().transport, claims.way.driver)
    monkeypatch.setattr(following, "SOON_S", 0.0)

    def sold(*batch: Found) -> list[Any]:
        claims.absorb(batch, now=life.now)
        claims.turn(0)
        return [card.published or card.health for card in Gpu.objects.all()]

    slices = published(4, "gpu-0")
    part = {
        "type": {"string": "mig"},
        "parentUUID": {"string": "GPU-gpu-0"},
        "profile": {"string": "1g.10gb"},
    }
    slices["spec"]["devices"].append(
        {"name": "p", "attributes": part, "capacity": {"memorySlice3": {"value": "1"}}}
    )
    sold(*nodes(node()))
    listed = [found(SLICES, "BEGUN"), found(SLICES, "PAGED", slices), found(SLICES, "LISTED")]
    assert sold(*listed) == [{"1g.10gb": [3], "card": [0]}]
    whole = a_class("gpu.nvidia.com", 5)
    listed = [found(CLASSES, "BEGUN"), found(CLASSES, "PAGED", whole), found(CLASSES, "LISTED")]
    assert sold(*listed) == [{"card": [0]}]
    mine = a_class("mig-1g.10gb.gpubroker.dev", 12)
    assert sold(found(CLASSES, "ADDED", mine, version=12)) == [{"1g.10gb": [3], "card": [0]}]
    assert sold(found(CLASSES, "DELETED", mine, version=13)) == [{"card": [0]}]


def test_many_changes_of_what_is_for_sale_are_taken_once_a_moment(
    agent: Agent, serve: Serve, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(agent, serve)
    moment, taken = [1000.0], []
    monkeypatch.setattr(following.clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(joining, "take_inventory", lambda cluster, found, now: taken.append(len(found)) or [])
    agent.absorb(nodes(node()), now=life.now)
    agent.turn(0)
    for number in range(2, 5):
        moment[0] += 0.2
        agent.absorb([found(NODE, "ADDED", node(f"n0{number}", version=number + 9))], now=life.now)
        agent.turn(0)
    assert taken == [1]
    moment[0] += 0.5
    agent.turn(0)
    assert taken == [1, 4]


class Still:
    """Whatever it should follow, it ends, as a thread does that met what nobody foresaw."""

    beats, is_open, is_idle, kind = 0, False, True, POD

    def follow(self, going: object) -> None:
        """End at once."""


def test_following_ends_when_told(agent: Agent, serve: Serve) -> None:
    through(agent, serve)
    asked: list[bool] = []
    agent.reflectors = []
    agent.pulse = agent.mender = Still()  # type: ignore[assignment]
    agent.follow(lambda: asked.append(True) or len(asked) < 2)  # type: ignore[func-returns-value]


def test_an_agent_that_lost_a_watch_ends_loudly(agent: Agent, serve: Serve) -> None:
    through(agent, serve)

    agent.reflectors = [Still()]  # type: ignore[list-item]
    with pytest.raises(following.Blind, match="nobody foresaw"):
        agent.follow(lambda: True)


def test_one_agent_leads_a_cluster(agent: Agent) -> None:
    assert following.lead(agent.cluster)
    assert following.lead(agent.cluster)  # the same session may ask again
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_lock(%s, hashtext(%s))", [following.LEADERS, agent.cluster.pk]
            )
            assert cursor.fetchone() == (False,)
    finally:
        other.close()


def test_a_second_agent_waits_until_the_first_is_gone(agent: Agent) -> None:
    first = connections.create_connection("default")
    try:
        with first.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [following.LEADERS, agent.cluster.pk])
        assert not following.lead(agent.cluster)
        assert following.lead(Cluster(id="clu_other"))
    finally:
        first.close()
    ends = clock.monotonic() + 10
    while not following.lead(agent.cluster):  # the server hears of it a moment later
        assert clock.monotonic() < ends


def test_a_cluster_nobody_knows_is_refused_with_those_that_are(agent: Agent) -> None:
    assert _named("east") == _named(agent.cluster.pk) == agent.cluster
    with pytest.raises(CommandError, match="known: east"):
        call_command("kube_agent", "west")


def test_a_pulse_that_waited_long_is_no_row(agent: Agent, life: Life) -> None:
    name = agent._pulse_name

    def beat(version: int, ago_s: float) -> Found:
        notes = {BEATS: str(clock.milliseconds() - int(ago_s * 1000))}
        meta = {"name": name, "namespace": "gpubroker-system", "uid": "u", "resourceVersion": str(version)}
        return found(CONFIG_MAP, "MODIFIED", {"metadata": {**meta, "annotations": notes}}, version=version)

    agent.absorb([beat(5, 60)], now=life.now)
    assert not ClusterObject.objects.exists()
    agent.absorb([beat(6, 0)], now=life.now)
    assert ClusterObject.objects.get().name == name
    at = life.now + timedelta(seconds=30)
    agent.absorb([beat(7, 3)], now=at)  # it proves what was true when it was sent
    assert timedelta(seconds=3) <= at - ClusterObject.objects.get().seen_at < timedelta(seconds=5)
    mine = {"metadata": {"name": name, "namespace": "gpubroker-system", "uid": "u", "resourceVersion": "8"}}
    agent.absorb([found(CONFIG_MAP, "MODIFIED", mine, version=8)], now=at)  # sent by whom, nobody knows
    assert ClusterObject.objects.get().seen_at == at


def test_a_pulse_in_another_cluster_or_an_older_state_freezes_it(agent: Agent, serve: Serve) -> None:
    wire = through(agent, serve, listing({"metadata": {"name": "kube-system", "uid": "uid-1"}}))
    agent._uid = "uid-1"

    def answer(version: str) -> Thing:
        return Thing(metadata=Meta(resource_version=version))

    assert not agent._is_strange(wire.api, None)
    assert not agent._is_strange(wire.api, answer("9"))
    assert agent._is_strange(wire.api, answer("7"))
    agent.turn(0)
    assert agent.frozen
    assert "an older state" in Cluster.objects.get().frozen
    agent.turn(0)  # nothing is due


def test_who_missed_that_its_cluster_froze_and_thawed_begins_anew(agent: Agent, serve: Serve) -> None:
    through(agent, serve)
    agent.absorb([found(POD, "BEGUN"), found(POD, "PAGED", pod()), found(POD, "LISTED")], now=NOW)
    agent.turn(0)
    assert not agent.frozen
    freezing.freeze(agent.cluster.pk, "an operator says so")
    freezing.thaw(agent.cluster, why="it is well", actor=OPERATOR, now=NOW)
    agent.absorb([found(POD, "MODIFIED", pod(version=12))], now=NOW)  # and what it knows is not written again
    agent._return_at = 0.0
    agent.turn(0)
    assert agent.frozen


def test_it_sees_all_only_while_every_watch_is_open(agent: Agent) -> None:
    agent.reflectors.append(Still())  # type: ignore[arg-type]
    agent.reflectors[-1].kind = SLICES
    assert not agent._sees_all()
    for each in agent.reflectors:
        each.is_open = each.kind in FOLLOWED
    assert agent._sees_all()
