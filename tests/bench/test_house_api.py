"""A small run of the benchmark of POST /leases."""

import json
import subprocess
import sys

import pytest


@pytest.mark.deep  # it starts a database and a server of its own
def test_a_small_run_measures_a_lease_against_a_bare_insert() -> None:
    command = [sys.executable, "-m", "deploy.bench", "house_api", "small"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    figures = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert [each["figure"] for each in figures] == ["lease_request"], ended.stderr[-2000:]
    assert figures[0]["ratio"] > 0
