"""A small run of the benchmark of operators' pages."""

import json
import subprocess
import sys

import pytest


@pytest.mark.deep  # it starts a database and requests every page of operators many times
def test_a_small_run_measures_every_page_of_operators() -> None:
    command = [sys.executable, "-m", "deploy.bench", "face_operators", "small"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400)
    figures = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    names = {each["figure"] for each in figures}
    assert {"control_room_p95", "tenants_p95", "system_p95", "month_close_p95"} <= names, ended.stderr[-2000:]
    assert len(names) >= 20
