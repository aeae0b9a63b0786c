"""A small run of the benchmark of a launch."""

import json
import subprocess
import sys

import pytest


@pytest.mark.deep  # it starts a database and the whole product
def test_a_small_run_measures_launches_until_they_are_active() -> None:
    command = [sys.executable, "-m", "deploy.bench", "launch", "small"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    every = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    figures = [each for each in every if each["bench"] == "launch"]  # the area has another benchmark
    wanted = ["launch_to_active_p50", "launch_to_active_p90"]
    assert [each["figure"] for each in figures] == wanted, ended.stderr[-2000:]
    assert all(0 < each["value"] < 60 for each in figures)
