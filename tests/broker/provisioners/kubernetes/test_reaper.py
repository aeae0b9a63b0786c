"""The reaper: deletion of leases after their paid time."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.provisioners.kubernetes import reaper
from broker.provisioners.kubernetes.client.api_connection import connect_api
from broker.provisioners.kubernetes.client.transport import Transport
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)

DATED = {"Date": "Sat, 21 Nov 2026 10:00:00 GMT"}
VERSION = ScriptedAnswer(body={"gitVersion": "v1.36.3"}, headers=DATED)
DONE = ScriptedAnswer(body={"kind": "Status", "status": "Success"})
PAST, AHEAD = "2026-11-21T09:59:00Z", "2026-11-21T10:01:00Z"


def listed(**until: str) -> ScriptedAnswer:
    items = [
        {
            "metadata": {
                "name": name,
                "namespace": "gt-a",
                "uid": f"u-{name}",
                "annotations": {"gpubroker.dev/paid-until": paid} if paid else {},
            }
        }
        for name, paid in until.items()
    ]
    return ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": items})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedServer], int]:
    """Run the reaper against a scripted server."""

    def main(wire: ScriptedServer) -> int:
        monkeypatch.setattr(reaper, "Transport", lambda _: wire.transport)
        return reaper.main()

    return main


def test_only_leases_past_their_paid_time_are_deleted(
    serve: StartServer, run: Callable[[ScriptedServer], int], capsys: pytest.CaptureFixture[str]
) -> None:
    wire = serve(listed(over=PAST, paid=AHEAD, silent=""), VERSION, DONE)
    assert run(wire) == 0
    (deleted,) = (each for each in wire.requests if each.method == "DELETE")
    assert (deleted.path.rsplit("/", 1)[-1], deleted.body["preconditions"]) == ("over", {"uid": "u-over"})
    assert capsys.readouterr().out == "deleted gt-a/over: its paid time is over\n"


def test_a_failed_deletion_does_not_stop_the_others(
    serve: StartServer, run: Callable[[ScriptedServer], int], capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden = error_status(403, "admission webhook says no")
    wire = serve(listed(a=PAST, b=PAST, c=PAST, d=PAST), VERSION, forbidden, DONE, error_status(409, "another"), DONE)
    assert run(wire) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"deleted gt-a/{name}: its paid time is over" for name in "bd"]
    assert said.err == "could not delete gt-a/a: admission webhook says no; the next run tries again\n"


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ((error_status(403, "may not list"),), "may not list"),
        ((ScriptedAnswer(body=b"<html>"),), "like Kubernetes"),
        ((listed(a=PAST), ScriptedAnswer(headers={"Date": "Caturday"})), "no valid Date header: 'Caturday'"),
    ],
)
def test_an_api_error_is_printed_and_fails_the_reaper_run(
    answers: tuple[ScriptedAnswer, ...],
    says: str,
    serve: StartServer,
    run: Callable[[ScriptedServer], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(serve(*answers)) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.0.0.1", "https://10.0.0.1:443"), ("fd00:10:96::1", "https://[fd00:10:96::1]:443")],
)
def test_the_reaper_connects_to_ipv4_and_ipv6_api_servers(
    host: str, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(reaper, "SERVICE_ACCOUNT_DIR", tmp_path)
    (tmp_path / "token").write_text("mine\n")
    (tmp_path / "ca.crt").write_text("read when it connects")
    connection = connect_api(reaper.pod_kubeconfig())
    assert (connection.host, connection.authorization()) == (server, "Bearer mine")
    assert Transport(reaper.pod_kubeconfig).connection().host == server
