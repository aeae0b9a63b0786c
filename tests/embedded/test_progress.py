"""Progress lines of a start."""

import re
import subprocess
import sys

import pytest

from deploy.embedded import progress
from deploy.embedded.progress import Progress


@pytest.fixture
def written() -> list[str]:
    return []


def test_a_step_is_printed_at_its_start_and_timed_at_its_end(written: list[str]) -> None:
    with Progress(written.append).step("Seed: fill in demo data"):
        assert written == ["Seed: fill in demo data ..."]
    assert re.fullmatch(r"Seed: fill in demo data \.\.\. 0\.\d s\n", "".join(written))


def test_a_long_step_prints_dots(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Progress(written.append)
    with shown.step("Migrations"):
        shown.tick()
        assert written == ["Migrations ..."]
        monkeypatch.setattr(progress, "DOT_EVERY_S", 0)
        shown.tick()
        assert written == ["Migrations ...", "."]
    shown.tick()
    assert re.fullmatch(r"Migrations \.\.\.\. 0\.\d s\n", "".join(written))


def test_progress_dots_appear_within_three_seconds() -> None:
    assert progress.DOT_EVERY_S < 3


def test_dots_appear_while_a_child_process_works(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DOT_EVERY_S", 0.1)
    shown = Progress(written.append)
    command = [sys.executable, "-c", "import time; time.sleep(0.5); raise SystemExit(7)"]
    with shown.step("Install"), subprocess.Popen(command, text=True) as child:
        assert shown.wait(child) == 7
    assert written.count(".") >= 2


def test_a_failed_step_ends_its_line_without_seconds(written: list[str]) -> None:
    with pytest.raises(OSError, match="full"), Progress(written.append).step("Database"):
        raise OSError("full")
    assert "".join(written) == "Database ...\n"


def test_a_message_during_a_step_is_printed_on_its_own_line(written: list[str]) -> None:
    shown = Progress(written.append)
    with shown.step("Processes"):
        shown.say("worker ended unexpectedly (exit status 1).")
    lines = "".join(written).splitlines()
    assert lines[:2] == ["Processes ...", "worker ended unexpectedly (exit status 1)."]
    assert re.fullmatch(r"Processes \.\.\. 0\.\d s", lines[2])
