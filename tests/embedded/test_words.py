"""Messages of the launcher, secret scan and test selection."""

import json
import os
import re
from pathlib import Path

import pytest

from deploy import secret_scan
from deploy.embedded import folders
from deploy.embedded.database_setup import read_seed_result
from deploy.embedded.migrations import fingerprint
from deploy.embedded.product_processes import ProductInstallation
from deploy.embedded.roles import Server
from deploy.embedded.startup_error import StartupError
from deploy.embedded.startup_message import startup_text
from deploy.embedded.valkey import Valkey
from tests import run

DEMO = {
    "accounts": [{"email": "ada@lab.example", "password": "four-words", "role": "owner of Lab"}],
    "token": "the-token",
    "launch": {"name": "first-slice", "offering": "off_1"},
}


def test_the_startup_text_shows_url_accounts_token_and_the_first_lease_request() -> None:
    said = startup_text(address="http://127.0.0.1:8000", demo=DEMO, logs=Path("/data/logs"), seconds=7.25)
    for part in (
        "http://127.0.0.1:8000",
        "7.2 s",
        "ada@lab.example",
        "four-words",
        "the-token",
        "curl -s -X POST http://127.0.0.1:8000/api/v1/leases",
        '{"name": "first-slice", "offering": "off_1"}',
    ):
        assert part in said


def test_the_startup_text_uses_the_url_of_the_current_start() -> None:
    said = startup_text(address="http://127.0.0.1:8111", demo=DEMO, logs=Path("/data/logs"), seconds=1)
    assert "POST http://127.0.0.1:8111/api/v1/leases" in said


def test_every_start_prints_a_new_idempotency_key() -> None:
    keys = set()
    for _ in range(3):
        said = startup_text(address="http://127.0.0.1:8000", demo=DEMO, logs=Path("/data/logs"), seconds=1)
        keys.add(re.findall(r"Idempotency-Key: ([\w-]+)'", said)[0])
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "localhost"),
        ("0.0.0.0", "localhost"),
        ("::1", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::7", "[2001:db8::7]"),
    ],
)
def test_public_url_and_allowed_hosts_use_the_same_host_name(
    host: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [variable for variable in os.environ if variable.startswith("GPUBROKER_")]:
        monkeypatch.delenv(variable)
    places = folders.create_directories(tmp_path, servers=None, products=None)
    valkey = Valkey("valkey-server", places.valkey, places.sockets)
    product = ProductInstallation(places, Server("postgresql://boss:word@db.example/postgres"), valkey, host, 8000)
    env = product.env("gpubroker_web")
    assert product.public_url == env["GPUBROKER_PUBLIC_URL"] == f"http://{name}:8000"
    assert env["GPUBROKER_EVENTS_UPSTREAM"] == "127.0.0.1:8001"
    assert env["GPUBROKER_PROVISIONER"] == "broker.provisioners.simulated.SimulatedProvisioner"
    assert {"localhost", "127.0.0.1", name} <= set(json.loads(env["GPUBROKER_ALLOWED_HOSTS"]))


def test_the_seed_result_is_the_last_line_of_its_output(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('a word before\n{"token": "t"}\n')
    assert read_seed_result(tmp_path / "demo.json") == {"token": "t"}


def test_a_seed_without_output_is_reported(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text("")
    with pytest.raises(StartupError, match="FRESH=1"):
        read_seed_result(tmp_path / "demo.json")


@pytest.mark.parametrize(
    "file", ["broker/migrations/0001_initial.py", "broker/migrations/sql/triggers.sql", "ports/sql_files.py"]
)
def test_a_changed_migration_changes_the_fingerprint(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("one")
    before = fingerprint(tmp_path)
    (tmp_path / file).write_text("two")
    assert fingerprint(tmp_path) != before


def test_logins_are_derived_from_the_administrators_and_differ() -> None:
    server = Server("postgresql://boss:password@db.example:5433/postgres?sslmode=require")
    web, worker = server.login("gpubroker_web", "gpubroker"), server.login("gpubroker_worker", "gpubroker")
    assert web.startswith("postgresql://gpubroker_web:")
    assert web.endswith("@db.example:5433/gpubroker?sslmode=require")
    assert "boss" not in web
    assert server.password("gpubroker_web") != server.password("gpubroker_worker")
    assert web != worker


PLANTED = {
    "private key": "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx",
    "AWS access key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "API token of ours": "gpb_live_" + "abcdefgh_" + "a" * 40,
    "password in an address": "postgresql://web:" + "hunter22222@db.example/app",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_secret_is_found_by_line_and_kind(kind: str) -> None:
    assert list(secret_scan.find_credentials(f"harmless\n{PLANTED[kind]}\n")) == [(2, kind)]


def test_a_placeholder_is_not_reported_as_a_secret() -> None:
    assert list(secret_scan.find_credentials("postgresql://user:password@host/db, https://{user}:{word}@host")) == []


@pytest.mark.parametrize(
    ("only", "arguments"),
    [
        ("embedded", ["tests/embedded"]),
        ("tests/embedded", ["tests/embedded"]),
        ("embedded/test_words.py::test_a", ["tests/embedded/test_words.py::test_a"]),
        ("chaos", ["tests/chaos"]),
        ("cluster", ["-m", "cluster"]),
        ("slow", ["-m", "slow"]),
    ],
)
def test_only_accepts_a_folder_a_file_or_a_marker(
    only: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "markers", lambda: ["cluster", "slow"])
    assert run.selection([only])[: len(arguments)] == arguments


def test_an_unknown_value_of_only_is_refused_with_the_known_markers() -> None:
    with pytest.raises(SystemExit, match="nor a marker \\(fast, browser"):
        run.selection(["nothing-like-that"])
