"""The trace as requests of tenants: when each arrives, how long it runs, what it asks for."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.trace import asked

OPENB = Path(__file__).resolve().parents[3] / "broker" / "traces" / "openb.csv"
COLUMNS = ["created", "scheduled", "deleted", "num_gpu", "gpu_milli"]


class UnreadableTrace(Exception):
    """The file is not a trace; the message names the line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; seconds since the trace began."""

    number: int
    arrives: int
    runs_s: int
    profile: str
    isolation: str
    count: int


def read(path: Path, model: GpuModelSpec) -> list[Request]:
    """Read a trace in order of arrival, or raise UnreadableTrace.

    A request that was scheduled arrives at that moment and runs until its deletion. One that never was
    arrives when it was made and would have run until its deletion.
    """
    try:
        with path.open(newline="") as file:
            requests = list(_requests(csv.DictReader(file), model))
    except OSError as error:
        raise UnreadableTrace(f"{path} cannot be read: {error.strerror}.") from error
    if not requests:
        raise UnreadableTrace(f"{path} holds no request.")
    return sorted(requests, key=lambda request: (request.arrives, request.number))


def _requests(rows: "csv.DictReader[str]", model: GpuModelSpec) -> Iterator[Request]:
    if rows.fieldnames != COLUMNS:
        raise UnreadableTrace(f"The first line must name the columns {','.join(COLUMNS)}.")
    for number, row in enumerate(rows):
        try:
            arrives = int(row["scheduled"] or row["created"])
            runs_s = int(row["deleted"]) - arrives
            wanted = asked(num_gpu=int(row["num_gpu"]), gpu_milli=int(row["gpu_milli"]), model=model)
            if runs_s < 0 or arrives < 0:
                raise ValueError("it ends before it begins")
        except (ValueError, TypeError) as error:
            raise UnreadableTrace(f"Line {number + 2} is no request: {error}.") from error
        yield Request(number, arrives, runs_s, wanted.profile.name, wanted.profile.isolation, wanted.count)
