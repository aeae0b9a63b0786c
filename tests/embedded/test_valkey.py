"""Valkey keeps messages across restarts and never evicts them."""

from pathlib import Path

import yaml

from deploy.embedded.valkey import Valkey

COMPOSE = Path(__file__).resolve().parents[2] / "deploy/compose.yaml"
KEPT = {"--appendonly": "yes", "--appendfsync": "everysec", "--maxmemory-policy": "noeviction"}


def options(command: list[str]) -> dict[str, str]:
    return dict(zip(command[1::2], command[2::2], strict=True))


def test_valkey_of_make_run_is_configured_to_keep_every_message(tmp_path: Path) -> None:
    found = options(list(Valkey("valkey-server", tmp_path, tmp_path).process_spec().command))
    assert KEPT.items() <= found.items()
    assert found["--port"] == "0"


def test_valkey_of_compose_is_configured_to_keep_every_message() -> None:
    found = options(yaml.safe_load(COMPOSE.read_text())["services"]["valkey"]["command"])
    assert KEPT.items() <= found.items()
