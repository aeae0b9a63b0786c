"""Traces as tenants' requests: arrival, run time and requested shape."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.workloads.openb_trace import map_trace_request

OPENB_PATH = Path(__file__).resolve().parents[4] / "broker" / "sample_data" / "openb.csv"
COLUMNS = ["created", "scheduled", "deleted", "num_gpu", "gpu_milli"]


class UnreadableTrace(Exception):
    """The file is not a trace; the message names the line and the error."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One request; times are seconds since the trace began."""

    number: int
    arrives: int
    runs_s: int
    profile: str
    isolation: str
    count: int


def read_trace(path: Path, model: GpuModelSpec) -> list[ReplayRequest]:
    """Read a trace in order of arrival, or raise UnreadableTrace.

    A scheduled request arrives when it was scheduled and runs until its deletion. One that was never
    scheduled arrives when it was created and would have run until its deletion.
    """
    try:
        with path.open(newline="") as file:
            requests = list(_requests(csv.DictReader(file), model))
    except OSError as error:
        raise UnreadableTrace(f"{path} cannot be read: {error.strerror}.") from error
    if not requests:
        raise UnreadableTrace(f"{path} contains no requests.")
    return sorted(requests, key=lambda request: (request.arrives, request.number))


def _requests(rows: "csv.DictReader[str]", model: GpuModelSpec) -> Iterator[ReplayRequest]:
    if rows.fieldnames != COLUMNS:
        raise UnreadableTrace(f"The first line must contain the columns {','.join(COLUMNS)}.")
    for number, row in enumerate(rows):
        try:
            arrives = int(row["scheduled"] or row["created"])
            runs_s = int(row["deleted"]) - arrives
            wanted = map_trace_request(num_gpu=int(row["num_gpu"]), gpu_milli=int(row["gpu_milli"]), model=model)
            if runs_s < 0 or arrives < 0:
                raise ValueError("it ends before it begins")
        except (ValueError, TypeError) as error:
            raise UnreadableTrace(f"Line {number + 2} is not a request: {error}.") from error
        yield ReplayRequest(number, arrives, runs_s, wanted.profile.name, wanted.profile.isolation, wanted.count)
