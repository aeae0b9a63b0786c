"""The compose file matches its secrets script and the chart."""

import base64
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
OURS = {"migrate", "web", "events", "worker", "background-worker", "agent", "beat", "relay", "log-collector"}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text())["services"])


def make_secrets(folder: Path) -> tuple[str, dict[str, str]]:
    script = folder / "compose.sh"
    if not script.exists():
        shutil.copy(DEPLOY / "compose.sh", script)
    said = subprocess.run([str(script)], capture_output=True, text=True, check=True).stdout
    lines = [line for line in (folder / ".env").read_text().splitlines() if not line.startswith("#")]
    return said, dict(line.split("=", 1) for line in lines)


def test_the_secrets_script_creates_every_required_variable(tmp_path: Path) -> None:
    needed = {name for name, kind, _ in VARIABLE.findall(COMPOSE.read_text()) if kind != "-"}
    said, made = make_secrets(tmp_path)
    assert needed == set(made)
    assert "up --build" in said
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    # They stand in addresses, where some signs would mean something else.
    assert all(re.fullmatch(r"[\w-]{32}", made[name]) for name in made if name.endswith("_PASSWORD"))
    assert len(base64.urlsafe_b64decode(made["CREDENTIAL_ENCRYPTION_KEYS"])) == 32


def test_a_second_run_of_the_script_changes_nothing(tmp_path: Path) -> None:
    _, first = make_secrets(tmp_path)
    said, second = make_secrets(tmp_path)
    assert first == second
    assert "Nothing was changed" in said


def test_every_process_is_a_service_with_minimal_rights(services: dict[str, Any]) -> None:
    assert set(services) == OURS | {"postgres", "valkey"}
    for name in OURS:
        own = services[name]
        assert own["read_only"], name
        assert own["cap_drop"] == ["ALL"], name
        assert own["user"] == "10001:10001", name
        assert "no-new-privileges:true" in own["security_opt"], name
        assert ("GPUBROKER_OWNER_DATABASE_URL" in own["environment"]) == (name == "migrate"), name


def test_each_process_uses_its_own_database_role(services: dict[str, Any]) -> None:
    logins = {name: services[name]["environment"]["GPUBROKER_DATABASE_URL"].split(":")[1] for name in OURS}
    web, worker = "//gpubroker_web", "//gpubroker_worker"
    assert logins == {
        "migrate": web, "web": web, "events": web,
        "worker": worker, "background-worker": worker,
        "agent": worker, "beat": worker, "relay": worker, "log-collector": worker,
    }  # fmt: skip


def test_only_web_events_and_processes_that_call_clusters_reach_the_outer_network(services: dict[str, Any]) -> None:
    outside = {name for name, own in services.items() if "outside" in own["networks"]}
    assert outside == {"web", "events", "worker", "background-worker", "agent", "log-collector"}
    ports = [port for own in services.values() for port in own.get("ports", [])]
    assert len(ports) == 1  # live streams are on it too
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_services_start_the_same_commands_as_the_chart(services: dict[str, Any]) -> None:
    """Compare compose commands with the chart's, except names of pods."""
    chart = yaml.safe_load_all((DEPLOY.parent / "tests/chart/golden/defaults.yaml").read_text())
    for item in chart:
        if item["kind"] not in ("Deployment", "Job"):
            continue
        name = item["metadata"]["name"].removeprefix("gpubroker-")
        wanted = list(item["spec"]["template"]["spec"]["containers"][0]["command"])
        if name in ("worker", "background-worker"):
            del wanted[wanted.index("--hostname") : wanted.index("--hostname") + 2]
        assert services[name]["command"] == wanted, name


def test_the_agent_follows_all_clusters(services: dict[str, Any]) -> None:
    """The chart starts one agent per cluster; compose starts one for all."""
    chart = yaml.safe_load_all((DEPLOY.parent / "tests/chart/golden/full.yaml").read_text())
    agents = [item for item in chart if item and item["metadata"]["name"].startswith("gpubroker-agent-")]
    [*started, named] = next(each for each in agents if each["kind"] == "Deployment")["spec"]["template"]["spec"][
        "containers"
    ][0]["command"]
    assert named in ("north", "south")
    assert services["agent"]["command"] == started


def test_the_database_scripts_are_mounted_and_exist(services: dict[str, Any]) -> None:
    mounts = [volume.split(":")[0] for volume in services["postgres"]["volumes"]]
    files = [DEPLOY / mount for mount in mounts if mount.startswith("./")]
    assert [file.name for file in files] == ["database.sql", "roles.sql"]
    assert all(file.is_file() for file in files)
    # The image runs them in this order; the first includes the second, and twice does no harm.
    assert sorted(file.name for file in files)[0] == "database.sql"
