"""A small run of the benchmark of launches while months close."""

import json
import subprocess
import sys

import pytest


@pytest.mark.deep  # it starts a database and the whole product
def test_a_small_run_measures_launches_with_and_without_closing_months() -> None:
    command = [sys.executable, "-m", "deploy.bench", "launch_month_end", "small"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    figures = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    wanted = ["placed_p50_while_months_close", "placed_p99_while_months_close"]
    assert [each["figure"] for each in figures] == wanted, ended.stderr[-2000:]
    # A handful of launches on a busy machine: their ratio says little, but none waits for the invoices.
    assert all(each["value"] < 10 for each in figures)
