"""Every process of the chart starts from the image and works."""

import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deploy.embedded.valkey import Valkey
from tests.chart.processes import box
from tests.chart.processes.box import Box
from tests.chart.rendering import ADDRESS, objects, pods
from tests.controlplane.plane import free_port
from tests.database import OwnDatabase

TOKEN = "for-the-tests-only"
PATIENCE_S = 180


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds what the image holds."""
    return box.image(tmp_path_factory.mktemp("image"))


@pytest.fixture
def start(
    app: Path, own_database: OwnDatabase, valkey_server: Valkey, valkey_url: str, tmp_path: Path
) -> Iterator[Callable[..., Box]]:
    """Start processes of the chart by name; all are stopped afterwards."""
    values = {
        **ADDRESS,
        "agent": {"clusters": ["north"]},
        "secrets": {"application": {"keys": {"metricsToken": "metrics-token"}}},
    }
    templates = {name.removeprefix("gpubroker-"): pod for name, pod in pods(objects(values))}
    secrets = {
        ("gpubroker", "secret-key"): "tests only: signs nothing that anybody else would accept",
        ("gpubroker", "credential-keys"): "",
        ("gpubroker", "metrics-token"): TOKEN,
        ("gpubroker-database", "web"): own_database.web_url,
        ("gpubroker-database", "worker"): own_database.worker_url,
        ("gpubroker-database", "owner"): own_database.owner_url,
        ("gpubroker-valkey", "url"): valkey_url,
    }
    with ExitStack() as running:

        def begin(name: str, command: list[str] | None = None, **moved: str) -> Box:
            pod = templates[name]
            words = command or [moved.get(word, word) for word in pod["spec"]["containers"][0]["command"]]
            found = box.start(name, pod, command=words, secrets=secrets, place=tmp_path / name, app=app)
            running.callback(found.stop)
            return found

        yield begin
    shutil.rmtree(tmp_path, ignore_errors=True)


def wait_until(true: Callable[[], bool], process: Box) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert process.process.poll() is None, process.words()
        assert time.monotonic() < end, process.words()
        time.sleep(0.1)


def get(port: int, path: str, host: str = "", **headers: str) -> tuple[int, bytes]:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        asking.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}", **headers})
        answer = asking.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        asking.close()


@pytest.mark.deep
def test_web_answers_probes_pages_and_metrics(start: Callable[..., Box]) -> None:
    port = free_port()
    web = start("web", **{"0.0.0.0:8000": f"127.0.0.1:{port}"})
    wait_until(lambda: get(port, "/ready")[0] == 200, web)
    assert get(port, "/health")[0] == 200
    status, page = get(port, "/sign-in/", "gpus.example.com")
    assert (status, b"<form" in page) == (200, True)
    assert get(port, "/static/css/base.css", "gpus.example.com")[0] == 200
    # As the first process of its namespace it counts all the same.
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    status, figures = get(port, "/metrics", **bearer, **{"X-Forwarded-For": "10.0.0.1"})
    assert status == 200
    assert b'gpubroker_http_requests_total{method="GET",route="account_login",status="200"} 1.0' in figures
    assert get(port, "/metrics", **{"X-Forwarded-For": "10.0.0.1"})[0] == 403
    assert "Traceback" not in web.words()
    assert get(port, "/health", "elsewhere.example.com")[0] == 400
    assert web.stop() == 0, web.words()


@pytest.mark.deep
def test_events_answer_their_probe(start: Callable[..., Box]) -> None:
    port = free_port()
    events = start("events", **{"8001": str(port), "0.0.0.0": "127.0.0.1"})
    wait_until(lambda: get(port, "/health")[0] == 200, events)
    assert get(port, "/api/v1/events")[0] == 401
    events.stop()
    assert "Traceback" not in events.words()


@pytest.mark.deep
def test_worker_beat_and_relay_process_an_enqueued_message(
    start: Callable[..., Box], own_database: OwnDatabase, valkey_server: Valkey
) -> None:
    worker = start("worker")
    wait_until(lambda: worker.beside(worker.probe) != "", worker)
    beat, relay = start("beat"), start("relay")
    with own_database.server.as_administrator(own_database.name) as connection:
        connection.execute(
            "INSERT INTO ports_outboxmessage (task, subject, tenant_id, at)"
            " VALUES ('broker.reconcile_lease', 'lse_nobody', 'ten_nobody', clock_timestamp())"
        )

        def sent() -> bool:
            row = connection.execute("SELECT count(*) FROM ports_outboxmessage").fetchone()
            return bool(row) and row[0] == 0

        wait_until(sent, relay)
    # Beat enqueued the sweep at once, the relay for the lease; the worker answered both.
    inspect = ["python", "-m", "celery", "-A", "config.celery", "inspect", "stats", "--json"]

    def answered() -> bool:
        return {"broker.sweep", "broker.reconcile_lease"} <= set(
            json.loads(worker.beside(inspect))["worker@worker-1"]["total"]
        )

    wait_until(answered, worker)
    for process in (beat, relay, worker):
        process.stop()
        assert "Traceback" not in process.words()


@pytest.mark.deep
def test_an_agent_of_an_unregistered_cluster_exits_with_a_message(start: Callable[..., Box]) -> None:
    agent = start("agent-north")
    assert agent.process.wait(PATIENCE_S) != 0
    assert "Kubernetes cluster 'north' does not exist. Registered: none." in agent.words()


@pytest.mark.deep
def test_the_migrate_job_succeeds(start: Callable[..., Box]) -> None:
    migrate = start("migrate")
    assert migrate.process.wait(PATIENCE_S) == 0, migrate.words()
    assert "No migrations to apply" in migrate.words()


def test_a_process_cannot_write_outside_of_its_folders(start: Callable[..., Box], app: Path) -> None:
    migrate = start("migrate", command=["touch", "/run/app/written"])
    assert migrate.process.wait(PATIENCE_S) != 0
    assert "Read-only file system" in migrate.words()
    assert not (app / "written").exists()
