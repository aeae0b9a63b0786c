"""Deletion of leases, and release of pods held by finalizers."""

from datetime import timedelta
from typing import Any

import pytest

from broker.models import Cluster, ClusterObject
from broker.provisioners.base import ClusterUnreachable, HeldPod, ObservedState
from broker.provisioners.kubernetes import labels, provisioner
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status
from tests.broker.provisioners.kubernetes.test_observation_cache import (
    NODE,
    NOTHING,
    OVER,
    READY,
    Scene,
    a_pod,
    listed,
    provision_spec,
)
from tests.simulation import NOW

WEBHOOK = error_status(403, 'admission webhook "pods.example.org" denied the request: no', reason="Forbidden")
INVALID = error_status(422, "metadata.finalizers: Forbidden", reason="Invalid")
CLOSING = error_status(403, "it is being terminated", causes=[{"reason": "NamespaceTerminating"}])
MARKS = {
    "gpubroker.dev/lease": provision_spec().lease_id,
    "gpubroker.dev/generation": "1",
    "gpubroker.dev/installation": "ins_1",
}


def anchor(**meta: Any) -> ScriptedAnswer:
    marks = labels.lease_labels(lease_spec(provision_spec(), "ins_1"))
    made = {"name": provision_spec().name, "uid": "u-anchor", "labels": marks, "resourceVersion": "7"}
    return ScriptedAnswer(body={"metadata": {**made, **meta}})


@pytest.mark.parametrize("failure", [WEBHOOK, INVALID])
def test_a_failed_finalizer_removal_still_deletes_the_lease(
    cluster: Cluster, serve: StartServer, failure: ScriptedAnswer
) -> None:
    pods = listed(a_pod(READY, namespace="gt-1"), a_pod(READY, namespace="gt-1", name="q", uid="u-q"))
    scene = Scene(cluster, serve(anchor(), pods, failure, ScriptedAnswer()))
    with pytest.raises(ClusterUnreachable):
        scene.provisioner.remove(provision_spec(), now=NOW)
    assert scene.verbs == ["GET", "GET", "PATCH", "PATCH", "DELETE"]
    assert scene.wire.requests[-1].body["preconditions"] == {"uid": "u-anchor"}


def test_a_finalizer_removal_timeout_still_deletes_the_lease(
    cluster: Cluster, serve: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provisioner, "RELEASE_TIMEOUT_S", 0.0)
    scene = Scene(cluster, serve(anchor(), listed(a_pod(READY, namespace="gt-1")), ScriptedAnswer()))
    with pytest.raises(ClusterUnreachable):
        scene.provisioner.remove(provision_spec(), now=NOW)
    assert scene.verbs == ["GET", "GET", "DELETE"]


@pytest.mark.parametrize("answers", [True, False])
def test_a_failed_finalizer_removal_still_deletes_an_orphan(
    cluster: Cluster, serve: StartServer, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    orphan = listed(a_pod(READY, namespace="gt-1", labels=MARKS))
    failure = [WEBHOOK] if answers else []
    if not answers:
        monkeypatch.setattr(provisioner, "RELEASE_TIMEOUT_S", 0.0)
    scene = Scene(cluster, serve(NOTHING, orphan, *failure, NOTHING, NOTHING, NOTHING, orphan, ScriptedAnswer()))
    with pytest.raises(ClusterUnreachable):
        scene.provisioner.remove_named(provision_spec().name, now=NOW)
    assert scene.verbs == ["GET", "GET", *["PATCH"] * len(failure), "GET", "GET", "GET", "GET", "DELETE"]


def test_a_running_pod_without_its_anchor_is_gone_and_last_seen_now(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), listed(a_pod(READY)), NODE))
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert (seen.seen, seen.last_seen) == (ObservedState.GONE, NOW)


def test_a_pod_deleted_before_readiness_is_reported_for_release(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(anchor()))
    scene.provisioner.ensure(provision_spec(), now=NOW)
    runs = a_pod(READY, name="q", uid="u-q")
    going = anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.wire.script = [going, listed(a_pod(OVER), runs, a_pod(OVER, finalizers=[]))]
    seen = scene.provisioner.ensure(provision_spec(), now=NOW)
    assert (seen.seen, seen.remains) == (ObservedState.GONE, (HeldPod("p", "u-p"),))


def test_pods_in_a_terminating_namespace_are_reported_for_release(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(CLOSING, error_status(404, "not found"), listed(a_pod(OVER))))
    seen = scene.provisioner.ensure(provision_spec(), now=NOW)
    assert (seen.seen, seen.remains) == (ObservedState.PENDING, (HeldPod("p", "u-p"),))


def test_an_empty_read_frees_no_slot_while_the_watch_has_the_pod(cluster: Cluster, serve: StartServer) -> None:
    empty = (error_status(404, "not found"), listed())
    scene = Scene(cluster, serve(*empty, *empty))
    scene.beats()
    scene.pod(READY)
    seen = scene.provisioner.remove(provision_spec(), now=NOW)
    assert (seen.seen, seen.text) == (ObservedState.PENDING, "shutting down")
    ClusterObject.objects.filter(kind="Pod").delete()
    assert scene.provisioner.remove(provision_spec(), now=NOW).seen is ObservedState.GONE


def test_without_a_watch_a_lease_is_gone_after_the_second_empty_observation(
    cluster: Cluster, serve: StartServer
) -> None:
    empty = (error_status(404, "not found"), listed())
    scene = Scene(cluster, serve(*empty, *empty, *empty, *empty))
    looks = [scene.provisioner.remove(provision_spec(), now=NOW + timedelta(seconds=s)) for s in (0, 2, 3, 4)]
    assert [each.seen for each in looks] == [
        ObservedState.PENDING,
        ObservedState.PENDING,
        ObservedState.GONE,
        ObservedState.PENDING,
    ]
    assert [each.again_in_s for each in looks[:2]] == [3, 1]


def test_a_reappearing_lease_needs_two_more_empty_observations(cluster: Cluster, serve: StartServer) -> None:
    empty = (error_status(404, "not found"), listed())
    scene = Scene(cluster, serve(*empty, anchor(), listed(), ScriptedAnswer(), *empty, *empty))
    looks = [scene.provisioner.remove(provision_spec(), now=NOW + timedelta(seconds=s)) for s in (0, 3, 6, 9)]
    assert [each.seen for each in looks] == [
        ObservedState.PENDING,
        ObservedState.PENDING,
        ObservedState.PENDING,
        ObservedState.GONE,
    ]
