"""Quotas of projects that somebody edits, deletes or uses up: put right and told at once, and only then."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Node
from broker.provisioners.base import Observation, Seen
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.kinds import Kind
from broker.provisioners.kubernetes.objects import Raw
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.sink import Found
from broker.provisioners.kubernetes.spec import ProjectSpec
from broker.services import outcomes, rounds
from broker.services.following import QUOTAS, Agent
from tenants.services.walls import as_tenant
from tests.broker.services.test_following import agent as agent
from tests.broker.services.test_rounds import WALLS, anchored, kestrel, kinds, moments
from tests.world import Home, Life, fresh, offering

__all__ = ("agent", "kestrel", "moments")
Body = dict[str, Any]


class Scene:
    """An agent of the cluster in which a lease is being made, and what it finds out about that project's quota."""

    def __init__(self, agent: Agent, life: Life, kestrel: Home) -> None:
        self.life, self.lease = life, life.lease(kestrel, offering(), LeaseState.PROVISIONING)
        Node.objects.update(cluster=agent.cluster)
        Cluster.objects.exclude(pk=agent.cluster.pk).delete()
        self.agent = agent
        self.is_of("ins_1")
        life.hints.clear()

    def is_of(self, installation: str) -> None:
        """Let the agent be one of a certain installation."""
        way = replace(self.agent.way, installation=installation)
        self.agent.way = self.agent.round._way = self.agent.ceilings._way = way

    def quota(self, *, used: str = "1", marks: Body | None = None, **hard: str) -> Body:
        whose = ProjectSpec(
            self.lease.tenant_id, self.lease.project_id, installation=self.agent.way.installation
        )
        made = project_objects(whose, self.agent.way.driver)
        (wanted,) = (each for each in made if each["kind"] == "ResourceQuota")
        meta = {**wanted["metadata"], "uid": "u-q", "resourceVersion": "5"}
        meta["labels"] = {**meta["labels"], **(marks or {})}
        lines = {**wanted["spec"]["hard"], **hard}
        return {"metadata": meta, "spec": {"hard": lines}, "status": {"hard": lines, "used": {"pods": used}}}

    def hears(self, how: str, *quotas: Body, version: int = 9) -> int:
        """Let the agent find something; return how often the lease was rung for."""
        self.life.hints.clear()
        items = [Raw(msgspec.json.encode(each)) for each in quotas]
        self.agent.absorb([Found(QUOTAS, how, items, version)], now=self.life.now)
        return [hint[3] for hint in self.life.hints].count(self.lease.pk)

    def lists(self, *quotas: Body) -> int:
        return sum(
            self.hears(how, *items) for how, items in (("BEGUN", ()), ("PAGED", quotas), ("LISTED", ()))
        )

    def hurried(self) -> list[str]:
        """Return what the agent would put right now."""
        found = kinds(self.agent.round._hurried_walls())
        assert not found or found[:2] == ["Namespace", "ResourceQuota"]
        return found


@pytest.fixture
def scene(agent: Agent, life: Life, kestrel: Home, moments: list[float]) -> Scene:
    made = Scene(agent, life, kestrel)
    anchored(made.lease)
    return made


def test_a_quota_as_it_should_be_concerns_nobody_however_its_server_writes_it(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.quota(**{"requests.memory": "32Ti"})) == 0
    assert scene.hears("MODIFIED", scene.quota(used="3"), version=10) == 0
    assert scene.lists(scene.quota()) == 0
    assert scene.hurried() == []


@pytest.mark.parametrize("how", ["edited", "lines taken away", "deleted", "deleted unseen"])
def test_what_somebody_did_to_a_quota_is_put_right_at_once_and_told_to_what_is_being_made(
    scene: Scene, how: str
) -> None:
    assert scene.lists(scene.quota()) == 0
    less = scene.quota()
    less["spec"]["hard"].pop("pods")
    match how:
        case "edited":
            rung = scene.hears("MODIFIED", scene.quota(pods="0"))
        case "lines taken away":
            rung = scene.hears("MODIFIED", less)
        case "deleted":
            rung = scene.hears("DELETED", scene.quota())
        case _:
            rung = scene.lists()
    assert rung == 1
    assert sorted(scene.hurried()) == sorted(WALLS)
    assert scene.hears("ADDED", scene.quota(), version=12) == (how in ("edited", "lines taken away"))
    assert scene.hurried() == []


def test_who_uses_a_quota_up_or_leaves_room_again_is_told_to_what_waits_for_it(scene: Scene) -> None:
    full = scene.quota()["spec"]["hard"]["pods"]
    assert scene.hears("ADDED", scene.quota()) == 0
    assert scene.hears("MODIFIED", scene.quota(used=full)) == 1
    assert scene.hears("MODIFIED", scene.quota(used=full)) == 0
    assert scene.hears("MODIFIED", scene.quota(used="1")) == 1
    assert scene.hurried() == []


def test_what_is_at_rest_is_not_looked_at_and_what_is_made_anew_is(scene: Scene) -> None:
    Cluster.objects.update(provisioner="simulated")
    scene.life.run(30)
    scene.life.sweep()
    assert fresh(scene.lease).state == LeaseState.ACTIVE
    assert scene.hears("DELETED", scene.quota()) == 0
    now = scene.life.now
    with as_tenant(scene.lease.tenant_id):
        outcomes.apply(fresh(scene.lease), Observation(Seen.LOST, "evicted", last_seen=now), now)
    assert scene.hears("DELETED", scene.quota(), version=10) == 1


def test_a_strangers_or_a_neighbours_quota_is_his_own(scene: Scene) -> None:
    neighbours = scene.quota(pods="0", marks={labels.INSTALLATION: "ins_2"})
    another = scene.quota(pods="0")
    another["metadata"]["name"] = "somebody-elses"
    nobodys = scene.quota(pods="0", marks={labels.PROJECT: ""})
    for each in (neighbours, another, nobodys):
        assert scene.hears("ADDED", each) == 0
    assert scene.hurried() == []


def test_a_project_without_leases_here_is_left_to_its_next(scene: Scene) -> None:
    scene.is_of("ins_2")
    scene.hears("DELETED", scene.quota())
    assert scene.hurried() == []


def test_who_edits_it_again_and_again_is_answered_every_ten_seconds(
    scene: Scene, moments: list[float]
) -> None:
    for version in (9, 10):
        scene.hears("MODIFIED", scene.quota(pods=str(version)), version=version)
        assert bool(scene.hurried()) == (version == 9)
    moments.append(rounds.URGENT_AGAIN_S)
    assert scene.agent.round.next()[1]["kind"] == "ResourceQuota"
    assert scene.agent.round.every_s == rounds.HURRIED_S


def test_quotas_are_followed_everywhere_and_vouch_for_no_lease(agent: Agent) -> None:
    followed: dict[Kind, Any] = {each.kind: each for each in agent.reflectors}
    assert followed[QUOTAS]._labels == labels.OURS
    for kind, each in followed.items():
        each.is_open = kind is not QUOTAS
    assert agent._sees_all()
