"""The environment is made from a lock that pins everything and names no host."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded import environment
from tests import ground

LOCKS = sorted(environment.LOCKS.values())


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    text = (ground.CHECKOUT / lock).read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 50
    unpinned = [
        line for line in lines if not re.match(r"^[\w.\[\],-]+==\S+.*--hash=sha256:[0-9a-f]{64}", line)
    ]
    assert unpinned == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    assert "://" not in (ground.CHECKOUT / lock).read_text()


def test_the_development_lock_holds_the_other_one() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==[\w.]+", (ground.CHECKOUT / lock).read_text(), re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


def test_an_environment_that_matches_its_lock_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "STAMP", str(tmp_path / "installed.json"))
    monkeypatch.setattr(environment, "install", lambda level: pytest.fail("installed again"))
    (tmp_path / "installed.json").write_text(json.dumps({"dev": environment.fingerprint("dev")}))
    environment.main("dev")


def test_a_changed_lock_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(environment, "STAMP", str(tmp_path / "installed.json"))
    monkeypatch.setattr(environment, "install", asked.append)
    (tmp_path / "installed.json").write_text(json.dumps({"run": "another lock's"}))
    environment.main("run")
    assert asked == ["run"]


def test_a_python_that_is_too_old_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "OLDEST", (99, 0))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SystemExit):
        environment.use_a_new_enough_python()
    assert "apt-get install python3" in capsys.readouterr().err


def test_a_python_without_venv_is_told_which_package_brings_it() -> None:
    hidden = "import sys; sys.modules['ensurepip'] = None; sys.path.insert(0, 'deploy/embedded'); import environment"
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}; environment.need_venv()"],
        cwd=ground.CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
