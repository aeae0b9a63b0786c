"""Parsing of trace files, and refusal of invalid ones."""

from collections import Counter
from pathlib import Path

import pytest

from billing.services.demo.replay.replay_trace import OPENB_PATH, UnreadableTrace, read_trace
from broker.services.inventory.gpu_catalogue import gpu_model_spec

H100 = "H100-80GB"
HEAD = "created,scheduled,deleted,num_gpu,gpu_milli\n"


def write_trace(folder: Path, lines: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(HEAD + lines)
    return path


def test_the_openb_trace_contains_every_gpu_request_once() -> None:
    requests = read_trace(OPENB_PATH, gpu_model_spec(H100))
    assert len(requests) == 7064
    assert len({request.number for request in requests}) == 7064
    assert sum(request.count > 1 for request in requests) == 75
    assert requests == sorted(requests, key=lambda request: (request.arrives, request.number))
    sizes = Counter(request.profile for request in requests if request.count == 1)
    assert sizes == {"1g.10gb": 106, "2g.20gb": 207, "3g.40gb": 390, "4g.40gb": 1044, "whole-gpu": 5242}


def test_a_scheduled_request_runs_from_its_schedule_time_until_its_deletion(tmp_path: Path) -> None:
    (request,) = read_trace(write_trace(tmp_path, "5,9,30,1,460\n"), gpu_model_spec(H100))
    assert (request.arrives, request.runs_s, request.profile, request.count) == (9, 21, "4g.40gb", 1)


def test_an_unscheduled_request_arrives_at_its_creation_time(tmp_path: Path) -> None:
    (request,) = read_trace(write_trace(tmp_path, "5,,30,2,1000\n"), gpu_model_spec(H100))
    assert (request.arrives, request.runs_s, request.profile, request.count) == (5, 25, "whole-gpu", 2)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("5,9,8,1,460\n", "Line 2 is not a request: it ends before it begins"),
        ("5,9,x,1,460\n", "Line 2 is not a request"),
        ("5,9,30,1\n", "Line 2 is not a request"),
        ("5,9,30,1,2000\n", "2000 thousandths is not a request for GPUs"),
        ("-5,,30,1,200\n", "it ends before it begins"),
        ("", "contains no requests"),
    ],
)
def test_an_invalid_trace_line_is_refused_with_its_number(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UnreadableTrace, match=says):
        read_trace(write_trace(tmp_path, line), gpu_model_spec(H100))


def test_a_trace_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UnreadableTrace, match="must contain the columns created,scheduled"):
        read_trace(path, gpu_model_spec(H100))


def test_a_missing_trace_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match="No such file"):
        read_trace(tmp_path / "nowhere.csv", gpu_model_spec(H100))
