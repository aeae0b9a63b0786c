"""Clusters are knocked at, examined by a worker, and believed only as far as is likely."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from broker.domain.states import Isolation
from broker.models import (
    Cluster,
    ClusterCredential,
    ClusterObject,
    ClusterWatch,
    Examination,
    Gpu,
    Health,
)
from broker.provisioners.kubernetes.doctor import taking
from broker.provisioners.kubernetes.doctor.taking import Known
from broker.provisioners.kubernetes.drivers.choosing import driver_named
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound
from broker.provisioners.kubernetes.pulse import pulse_ref
from broker.services import catalogue, examining, joining, knocking
from tenants.services.refusals import Refused
from tests.broker.provisioners.kubernetes.doctor.healthy import WELL
from tests.broker.provisioners.kubernetes.wire import Say, Wire, refused
from tests.world import MODEL, OPERATOR, REGION, Life, fleet

KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
Named = Callable[[str], Say]


@pytest.fixture
def joined(life: Life, settings: Any) -> Cluster:
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    catalogue.load_gpu_models()
    return joining.join(
        name="north",
        region=REGION,
        kubeconfig=KUBECONFIG,
        driver="device_plugin",
        actor=OPERATOR,
        now=life.now,
    )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Wire]]:
    """Let whatever is knocked at be a server that answers from a script."""
    with ExitStack() as running:

        def serve(*script: Say) -> Wire:
            wire = running.enter_context(Wire(*script).up())
            monkeypatch.setattr(knocking, "Transport", lambda kubeconfig: (kubeconfig(), wire.transport)[1])
            return wire

        yield serve


def who(uid: str, *, version: int = 1) -> Say:
    namespace = {"metadata": {"name": "kube-system", "uid": uid}}
    return Say(body={"metadata": {"resourceVersion": str(version)}, "items": [namespace] if uid else []})


def fresh(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def knock(cluster: Cluster, life: Life) -> Cluster:
    knocking.knock(cluster.pk, now=life.now)
    return fresh(cluster)


def test_a_cluster_that_answers_is_known_by_its_uid(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    answers(who("uid-1"))
    seen = knock(joined, life)
    assert (seen.uid, seen.silent_since) == ("uid-1", None)
    assert knock(joined, life).version == seen.version
    assert knocking.clusters_to_knock_at() == [joined.pk]


def test_a_cluster_whose_agent_has_a_pulse_is_not_asked(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    wire, ref = answers(who("uid-1")), pulse_ref(joined.pk)
    ClusterObject.objects.create(
        cluster=joined, kind="ConfigMap", namespace=ref.namespace, name=ref.name, version=1, seen_at=life.now
    )
    assert knock(joined, life).uid == "uid-1"  # who it is must be known first
    knock(joined, life)
    assert len(wire.asked) == 1
    life.clock.at += timedelta(seconds=21)
    knock(joined, life)
    assert len(wire.asked) == 2


def test_silence_is_dated_from_the_first_knock_and_ends_with_an_answer(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    answers(refused(403, "forbidden"))
    began = life.now
    assert knock(joined, life).silent_since == began
    life.clock.at += timedelta(seconds=15)
    silent = knock(joined, life)
    assert (silent.silent_since, silent.silent_why) == (began, "forbidden")
    answers(who("uid-1"))
    back = knock(joined, life)
    assert (back.silent_since, back.silent_why) == (None, "")


def test_another_cluster_in_its_place_gets_nothing_new(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    Cluster.objects.update(uid="uid-1")
    answers(who("uid-2"))
    seen = knock(joined, life)
    assert seen.silent_since is not None
    assert "another cluster" in seen.silent_why
    assert seen.uid == "uid-1"


def test_an_older_state_of_a_cluster_is_frozen_though_nobody_lists_anything(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    """Watches that are too far ahead of it are not told: they hear nothing, as when nothing happens."""
    Cluster.objects.update(uid="uid-1")
    ClusterWatch.objects.create(
        cluster=joined, kind="Pod", version=120, heard_at=life.now, synced_at=life.now
    )
    answers(who("uid-1", version=120))
    assert not knock(joined, life).frozen
    answers(who("uid-1", version=119))
    seen = knock(joined, life)
    assert "an older state" in seen.frozen
    assert seen.silent_since == life.now


def test_a_cluster_without_the_namespace_of_every_cluster_is_none(
    joined: Cluster, answers: Callable[..., Wire], life: Life
) -> None:
    Cluster.objects.update(uid="uid-1")
    answers(who(""))
    assert "another cluster" in knock(joined, life).silent_why


def test_an_examination_is_asked_for_done_by_a_worker_and_kept(
    joined: Cluster, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = []
    monkeypatch.setattr(
        taking, "take", lambda kubeconfig, driver, **rest: (known.append(rest["known"]), WELL)[1]
    )
    examining.ask_for(joined, actor=OPERATOR, now=life.now)
    assert ("broker.examine", joined.pk) in {hint[2:4] for hint in life.hints}
    assert Examination.objects.get().done_at is None
    examining.carry_out(joined.pk, now=life.now)
    done = Examination.objects.get()
    assert (done.asked_by, done.done_at) == (OPERATOR.label, life.now)
    assert len(json.loads(json.dumps(done.findings))) > 40
    assert known[0].orders == frozenset()


def test_a_cluster_is_examined_before_it_joins(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue.load_gpu_models()
    known = []
    monkeypatch.setattr(
        taking, "take", lambda kubeconfig, driver, **rest: (known.append(rest["known"]), WELL)[1]
    )
    driver = driver_named("device_plugin", {}, examining.models())
    assert len(examining.of_kubeconfig(KUBECONFIG, driver=driver, now=life.now)) > 40
    assert known == [Known()]


def test_without_credentials_there_is_one_finding(joined: Cluster, life: Life) -> None:
    ClusterCredential.objects.all().delete()
    (only,) = examining.of_cluster(joined, now=life.now)
    assert (only.name, only.outcome) == ("reachable", "bad")
    assert "register" in only.seen


def test_a_simulated_cluster_has_nothing_to_examine(life: Life) -> None:
    fleet()
    with pytest.raises(Refused, match="simulated"):
        examining.ask_for(Cluster.objects.get(), actor=OPERATOR, now=life.now)


def nodes(count: int, cards: int = 8) -> list[NodeFound]:
    whole = (Cut(0, 8, "card"),)
    return [
        NodeFound(
            f"n{number}",
            tuple(
                CardFound(index, f"n{number}/{index}", MODEL, Isolation.DEVICE, whole)
                for index in range(cards)
            ),
        )
        for number in range(count)
    ]


def healthy() -> int:
    return Gpu.objects.filter(health=Health.HEALTHY).count()


def test_a_list_that_is_suddenly_empty_is_not_believed(joined: Cluster, life: Life) -> None:
    joining.take_inventory(joined, nodes(4), now=life.now)
    (why,) = joining.take_inventory(joined, [], now=life.now)
    assert "0 of 32" in why
    assert (healthy(), fresh(joined).halted) == (32, why)
    joining.take_inventory(joined, nodes(4), now=life.now)
    assert fresh(joined).halted == ""


def test_a_machine_may_vanish_and_come_back_unasked(joined: Cluster, life: Life) -> None:
    joining.take_inventory(joined, nodes(2), now=life.now)
    joining.take_inventory(joined, nodes(1), now=life.now)
    assert healthy() == 8
    joining.take_inventory(joined, nodes(2), now=life.now)
    assert healthy() == 16


def test_a_person_may_say_that_the_cards_are_really_gone(joined: Cluster, life: Life) -> None:
    joining.take_inventory(joined, nodes(4), now=life.now)
    joining.take_inventory(joined, nodes(1), now=life.now)
    assert healthy() == 32
    joining.believe(joined, why="the rack was sold", actor=OPERATOR, now=life.now)
    joining.take_inventory(joined, nodes(1), now=life.now)
    assert healthy() == 8
    assert (fresh(joined).believes, fresh(joined).halted) == (False, "")
