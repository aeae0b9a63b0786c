"""Processor time of groups of processes."""

import os
from collections.abc import Iterable
from pathlib import Path

from deploy.embedded.process import Process

TICKS = os.sysconf("SC_CLK_TCK")
AFTER_NAME = 2  # fields of a process' stat count on from its name, which may hold anything
GROUP, USER, SYSTEM = 5 - AFTER_NAME - 1, 14 - AFTER_NAME - 1, 15 - AFTER_NAME - 1


def seconds(processes: Iterable[Process]) -> float:
    """Return the CPU seconds that some processes and their children took so far."""
    groups = {str(each.popen.pid) for each in processes}
    taken = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if fields[GROUP] in groups:
            taken += int(fields[USER]) + int(fields[SYSTEM])
    return taken / TICKS
