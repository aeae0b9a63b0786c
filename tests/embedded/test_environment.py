"""Virtual environment: lock files, installation and refused Python versions."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded import environment
from deploy.embedded.progress import Progress
from tests import session

LOCKS = sorted(environment.LOCKS.values())


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    text = (session.CHECKOUT / lock).read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 50
    unpinned = [line for line in lines if not re.match(r"^[\w.\[\],-]+==\S+.*--hash=sha256:[0-9a-f]{64}", line)]
    assert unpinned == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    assert "://" not in (session.CHECKOUT / lock).read_text()


def test_the_development_lock_includes_the_runtime_lock() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==[\w.]+", (session.CHECKOUT / lock).read_text(), re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


def test_an_environment_that_matches_its_lock_is_not_reinstalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "STAMP", str(tmp_path / "installed.json"))
    monkeypatch.setattr(environment, "install", lambda level, progress: pytest.fail("installed again"))
    (tmp_path / "installed.json").write_text(json.dumps({"dev": environment.fingerprint("dev")}))
    environment.main("dev")


def test_a_changed_lock_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    monkeypatch.setattr(environment, "STAMP", str(tmp_path / "installed.json"))
    monkeypatch.setattr(environment, "install", lambda level, progress: requests.append(level))
    (tmp_path / "installed.json").write_text(json.dumps({"run": "another lock's"}))
    environment.main("run")
    assert requests == ["run"]


def test_a_too_old_python_is_refused_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "OLDEST", (99, 0))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SystemExit):
        environment.use_a_new_enough_python()
    said = capsys.readouterr().err
    assert "apt-get install python3" in said
    assert "make run PYTHON=" in said
    assert said.count("\n") == 1


def test_a_python_without_venv_is_refused_with_the_package_to_install() -> None:
    hidden = "import sys; sys.modules['ensurepip'] = None; sys.path.insert(0, 'deploy/embedded'); import environment"
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}; environment.need_venv()"],
        cwd=session.CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert done.stderr.count("\n") == 1


BEFORE_THE_VERSION_CHECK = (
    "__init__.py",
    *(f"embedded/{name}.py" for name in ("__init__", "environment", "port_check", "progress", "startup_error")),
)


@pytest.mark.parametrize("file", BEFORE_THE_VERSION_CHECK)
def test_the_version_check_parses_on_an_old_python(file: str) -> None:
    ast.parse((session.CHECKOUT / "deploy" / file).read_text(), feature_version=(3, 7))


def python(folder: Path, script: str) -> str:
    """Write a script in place of a Python interpreter."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "script", [None, "exit 3", "echo Python 3.8.18", "echo False", "echo 'Traceback: no module' >&2; exit 1"]
)
def test_a_python_that_cannot_start_is_refused_in_one_sentence(tmp_path: Path, script: str | None) -> None:
    named = "/nonexistent" if script is None else python(tmp_path, script)
    # Not as a part of the make that runs the tests, which would make this one name its folder as well.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "run", f"PYTHON={named}"], cwd=session.CHECKOUT, capture_output=True, text=True, env=outside
    )
    assert done.returncode != 0
    assert done.stdout == ""
    said, makes_own = done.stderr.splitlines()
    assert said == (
        f"PYTHON={named} does not start or is too old: name Python 3.11 or newer, make run PYTHON=/path/to/python3.11."
    )
    assert makes_own.startswith("make")


@pytest.fixture
def without_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environment, "VENV", str(tmp_path / "venv"))
    monkeypatch.setattr(environment, "STAMP", str(tmp_path / "venv/installed.json"))
    return tmp_path


def test_each_installation_step_prints_one_line_with_its_seconds(
    without_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = "mkdir -p venv/bin && printf '#!/bin/sh\\n' > venv/bin/python && chmod +x venv/bin/python"
    monkeypatch.chdir(without_environment)
    monkeypatch.setattr(sys, "executable", python(without_environment, made))
    monkeypatch.setattr(environment, "works", lambda *_: False)
    environment.install("run", Progress())
    said = capsys.readouterr().out.splitlines()
    assert [re.sub(r"\.\.\.+ [\d.]+ s$", "N s", line) for line in said] == [
        "Environment: create venv N s",
        "Environment: install the packages of requirements.lock N s",
    ]
    assert environment.installed() == {"run": environment.fingerprint("run")}


def test_a_failed_creation_of_the_environment_shows_pythons_message(
    without_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python(without_environment, "echo own words >&2; exit 1"))
    with pytest.raises(SystemExit):
        environment.install("run", Progress())
    assert capsys.readouterr().err == (
        f"own words\nPython could not create the environment {environment.VENV}; its own words are above.\n"
    )


def test_a_wrong_port_is_refused_before_anything_is_installed(without_environment: Path) -> None:
    with pytest.raises(SystemExit):
        environment.main("run", "abc")
    assert list(without_environment.iterdir()) == []
