"""Building and finding of the control plane's programs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import binaries, build

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate cache, and copies of the pins."""
    monkeypatch.delenv("CONTROLPLANE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in binaries.modules():
        shutil.copytree(binaries.HERE / module, tmp_path / "pins" / module)
    monkeypatch.setattr(binaries, "HERE", tmp_path / "pins")
    return tmp_path


def test_a_changed_pin_has_another_build_folder(elsewhere: Path) -> None:
    before = {module: binaries.build_dir(module) for module in binaries.modules()}
    with (elsewhere / "pins/etcd/go.sum").open("a") as pins:
        pins.write("example.org/new v1.0.0 h1:one=\n")
    after = {module: binaries.build_dir(module) for module in binaries.modules()}
    assert before.keys() >= {"etcd", "kubernetes", "kwok"}
    assert {module for module in before if before[module] != after[module]} == {"etcd"}


def test_cached_programs_are_found_and_missing_ones_are_named(elsewhere: Path) -> None:
    assert "kwok" in binaries.missing_binaries()
    program = binaries.build_dir("kwok") / "kwok"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert binaries.find_binary("kwok") == program
    assert "kwok" not in binaries.missing_binaries()


def test_the_linker_flags_set_the_version_of_kubernetes_only() -> None:
    assert "gitVersion=v1.36." in build.linker_flags("kubernetes")
    assert "gitMinor=36" in build.linker_flags("kubernetes")
    assert build.linker_flags("etcd") == "-s -w"


def test_a_missing_go_is_reported_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="Install Go 1\\.26 or newer"):
        build.need_go()


def test_an_old_go_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(old))
    with pytest.raises(SystemExit, match=r"is go1\.19\.8"):
        build.need_go()


def test_a_failed_build_leaves_no_partial_result_and_stops_no_other_module(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go = tmp_path / "go"  # builds whatever is asked for, except kwok
    go.write_text("""#!/bin/sh
[ "$1" = env ] && { echo go1.26.1; exit; }
for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl helm; do
  install -m 755 /dev/null "$GOBIN/$name"
done
case "$PWD" in */kwok) exit 1;; esac
""")
    go.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(go))
    monkeypatch.setattr(build, "HERE", binaries.HERE)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert build.main() == 1
    assert "kwok could not be built" in capsys.readouterr().out
    assert binaries.missing_binaries() == ["kwok"]
    assert binaries.find_binary("etcd") == binaries.build_dir("etcd") / "etcd"


def test_existing_builds_of_the_pins_are_not_repeated(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in binaries.modules():
        binaries.build_dir(module).mkdir(parents=True)
    monkeypatch.setattr(build, "need_go", lambda: pytest.fail("nothing is left to build"))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert build.main() == 0
    assert "Building" not in capsys.readouterr().out


def test_tests_without_the_programs_are_skipped_with_one_message(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "tests/controlplane/test_dra.py"],
        cwd=CHECKOUT,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TEST_"))},
            "CONTROLPLANE": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 5, done.stdout  # nothing was run
    reported = [line for line in done.stdout.splitlines() if "make controlplane" in line and "cluster" in line]
    assert reported == ["left out: cluster tests: no Kubernetes control plane; make controlplane adds it"]
