"""A small run of each benchmark: it ends by itself and prints its figures."""

import json
import subprocess
import sys
from math import isfinite
from pathlib import Path

import pytest

from deploy import bench

# The size that makes it small: a word, or a number of what it measures.
SIZES = {
    "billing": "small",
    "billing_conservation": "400",
    "billing_credits": "200",
    "billing_documents": "small",
    "billing_funds": "400",
    "billing_ingest": "100",
    "billing_ledger": "small",
    "billing_metamorphic": "10",
    "billing_oracle": "50",
    "billing_run": "40",
    "billing_stripe": "40",
    "billing_workers": "20",
    "face": "small",
    "house_replay": "small",
    "kubernetes": "small",
    "kubernetes_agent": "small",
    "placement": "small",
    "placement_durable": "small",
    "placement_shared": "2",
    "telemetry": "small",
    "telemetry_samples": "112",
}
# Run small by a test of its own, which checks more.
ELSEWHERE = {"face_operators", "face_streams", "house_api", "launch", "launch_month_end"}
NEEDS_CLUSTER = {"kubernetes", "kubernetes_agent"}
FIELDS = {"bench", "figure", "value", "unit", "baseline", "ratio", "goal", "ok", "load"}


def test_every_benchmark_has_a_small_run() -> None:
    assert set(bench.modules("")) == set(SIZES) | ELSEWHERE
    assert not set(SIZES) & ELSEWHERE


@pytest.mark.deep  # each starts a database of its own
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.cluster if name in NEEDS_CLUSTER else ()) for name in SIZES]
)
def test_a_small_run_prints_figures(name: str) -> None:
    code = f"from deploy.embedded.scratch import scratch\nwith scratch() as ready: ready.run({sys.executable!r}, '-m', "
    code += f"'bench.{name}', {SIZES[name]!r})"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, cwd=Path(__file__).parents[2]
    )
    figures = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"bench"')]
    assert figures, ended.stderr[-3000:]
    for figure in figures:
        assert set(figure) == FIELDS
        assert isfinite(figure["value"])
    assert "Traceback" not in ended.stderr, ended.stderr[-3000:]
