"""Played output of leases, and their stored logs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from broker.domain.logs.log_lines import SKIPPED_TEXT, LineSource, LogLine, NumberedLine
from broker.models import Lease, LeaseLog
from broker.provisioners.base import LogRead, ProvisionSpec
from broker.services.logs import log_collection, log_pages
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation


@dataclass
class PlayedOutput:
    """What the clusters have as output, in reads of at most `per_read` lines."""

    sim: Simulation
    lines: list[LogLine] = field(default_factory=list)
    per_read: int = 1000
    failure: Exception | None = None
    fault: str = ""
    reads: list[tuple[str, bool]] = field(default_factory=list)
    before_answer: Callable[[], None] = lambda: None

    def write(self, *texts: str) -> None:
        self.lines += [LogLine(self.sim.now, text) for text in texts]

    def read_log(self, spec: ProvisionSpec, cursor: dict[str, Any], *, newest_only: bool, now: datetime) -> LogRead:
        self.reads.append((spec.name, newest_only))
        self.before_answer()
        if self.failure:
            raise self.failure
        start = cursor.get("read", 0)
        end = len(self.lines) if newest_only else min(start + self.per_read, len(self.lines))
        gap = start < end - self.per_read
        start = max(start, end - self.per_read)
        missing = [LogLine(now, SKIPPED_TEXT, LineSource.PLATFORM)] if gap else []
        return LogRead((*missing, *self.lines[start:end]), {"read": end}, more=end < len(self.lines), fault=self.fault)

    def collect(self, lease: Lease, seconds: float = 60) -> int:
        """Collect a log once it is due, and return how many lines it got."""
        self.sim.run(seconds)
        return log_collection.collect_log(lease.pk, lease.tenant_id, now=self.sim.now)


def stored_lines(lease: Lease) -> list[NumberedLine]:
    with tenant_scope(lease.tenant_id):
        return list(log_pages.iterate_lines(lease))


def program_texts(lease: Lease) -> list[str]:
    """Return what the lease's program wrote, as stored."""
    return [each.line.text for each in stored_lines(lease) if each.line.source == "program"]


def log_of(lease: Lease) -> LeaseLog:
    with tenant_scope(lease.tenant_id):
        return LeaseLog.objects.get(pk=lease.pk)
