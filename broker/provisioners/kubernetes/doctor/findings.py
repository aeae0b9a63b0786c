"""Check results of a cluster: what was found, why it matters, how to fix it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, UnreadableError


class CheckOutcome(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but something is missing or may surprise
    BAD = "bad"  # leases would fail, or tenants would not be isolated
    UNKNOWN = "unknown"  # could not be read


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    outcome: CheckOutcome
    seen: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """One check of a cluster, and why it is made."""

    name: str
    why: str
    ask: Callable[[ClusterSnapshot], CheckResult]


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """A check's result together with its name and reason."""

    name: str
    outcome: CheckOutcome
    seen: str
    why: str
    fix: str


def ok(seen: str) -> CheckResult:
    return CheckResult(CheckOutcome.OK, seen)


def warn(seen: str, fix: str) -> CheckResult:
    return CheckResult(CheckOutcome.WARN, seen, fix)


def bad(seen: str, fix: str) -> CheckResult:
    return CheckResult(CheckOutcome.BAD, seen, fix)


def unknown(seen: str, fix: str) -> CheckResult:
    return CheckResult(CheckOutcome.UNKNOWN, seen, fix)


def run_check(check: ClusterCheck, snapshot: ClusterSnapshot) -> ClusterFinding:
    """Run one check; its result is unknown if required data could not be read."""
    try:
        result = check.ask(snapshot)
    except UnreadableError as unseen:
        result = unknown(str(unseen), "Run kube_doctor with an administrator's kubeconfig (--kubeconfig FILE).")
    return ClusterFinding(check.name, result.outcome, result.seen, check.why, result.fix)


def list_some(all_of_them: Iterable[str], most: int = 4) -> str:
    """List the first few names and the number of the others."""
    listed = sorted(all_of_them)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
