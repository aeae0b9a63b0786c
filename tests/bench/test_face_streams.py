"""A small run of the benchmark of idle live connections."""

import json
import subprocess
import sys

import pytest


@pytest.mark.deep  # it starts a database and a stream server
def test_a_small_run_measures_the_processors_of_idle_streams() -> None:
    command = [sys.executable, "-m", "deploy.bench", "face_streams", "small"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    figures = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert [each["figure"] for each in figures] == ["processors_of_idle_streams"], ended.stderr[-2000:]
    assert figures[0]["value"] < 1
