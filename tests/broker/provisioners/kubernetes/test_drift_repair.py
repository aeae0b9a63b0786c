"""Repair of changed objects in a cluster, one at a time."""

import pytest

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent.drift_repair import DriftRepairer
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from ports import clock
from tests.broker.provisioners.kubernetes.lease_specs import EVERY_TEMPLATE, PLUGIN, PROJECT, of_kind
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)

LEASE = EVERY_TEMPLATE["jupyter"]
(SERVICE,) = of_kind(lease_objects(LEASE, PLUGIN, anchor_uid="u-anchor"), "Service")
PROJECT_OBJECTS = project_objects(PROJECT, PLUGIN, allowed_namespaces=("edge",))
TOUCHED = error_status(409, "conflict", causes=[{"reason": "FieldManagerConflict"}])


def existing_object(marks: dict[str, str]) -> ScriptedAnswer:
    owner = {"kind": "ConfigMap", "name": "anchor", "uid": "u-anchor"}
    return ScriptedAnswer(body={"metadata": {"name": "x", "uid": "u-x", "labels": marks, "ownerReferences": [owner]}})


def repair_requests(wire: ScriptedServer, *manifests: dict[str, object]) -> list[tuple[str, str, str]]:
    """Repair objects; return the requests: method, whether forced, and the object UID."""
    repairer = DriftRepairer(wire.transport)
    repairer.enqueue(manifests, every_s=0)
    for _ in manifests:
        assert not repairer.is_idle
        repairer.repair_next()
    assert repairer.is_idle
    return [
        (
            each.method,
            "force" if "force=true" in each.path else "",
            (each.body["metadata"] if each.body else {}).get("uid", ""),
        )
        for each in wire.requests
    ]


def test_an_unchanged_object_needs_one_unforced_patch(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer(body={"metadata": {"name": "x"}}))
    assert repair_requests(wire, *PROJECT_OBJECTS, SERVICE) == [("PATCH", "", "")] * 8
    managers = [each.path.split("fieldManager=")[1].split("&")[0] for each in wire.requests]
    assert managers == [labels.PROJECTS] * 7 + [labels.LEASES]


def test_a_changed_project_object_is_repaired_by_force(serve: StartServer) -> None:
    wire = serve(TOUCHED, ScriptedAnswer(body={"metadata": {"name": "x"}}))
    assert repair_requests(wire, PROJECT_OBJECTS[-1]) == [("PATCH", "", ""), ("PATCH", "force", "")]


def test_a_changed_lease_object_is_repaired_if_it_is_ours(serve: StartServer) -> None:
    wire = serve(TOUCHED, existing_object(labels.lease_labels(LEASE)))
    assert repair_requests(wire, SERVICE)[-1] == ("PATCH", "force", "u-x")


def test_a_foreign_immutable_or_forbidden_object_is_not_overwritten(serve: StartServer) -> None:
    for answers in ((TOUCHED, existing_object({})), (error_status(422, "immutable"),), (error_status(403, "no"),)):
        assert not any(forced for _, forced, _ in repair_requests(serve(*answers), SERVICE))


def test_repair_skips_an_object_whose_server_is_unreachable(serve: StartServer, simulated_clock: None) -> None:
    wire = serve()
    wire.host = "http://127.0.0.1:9"
    assert repair_requests(wire, SERVICE) == []


def test_repair_calls_keep_the_minimum_interval(
    serve: StartServer, simulated_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = serve(ScriptedAnswer(body={"metadata": {"name": "x"}}))
    repairer, began, at = DriftRepairer(wire.transport), clock.monotonic(), list[float]()
    once = repairer.repair_next
    monkeypatch.setattr(repairer, "repair_next", lambda: (at.append(clock.monotonic() - began), once()))
    repairer.enqueue(PROJECT_OBJECTS[:3], every_s=2.0)
    repairer.follow(lambda: clock.monotonic() < began + 10)
    assert [round(each) for each in at] == [0, 2, 4]
