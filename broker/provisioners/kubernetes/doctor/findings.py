"""What an examination of a cluster finds: what was seen, why it matters, and what to do about it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from broker.provisioners.kubernetes.doctor.snapshot import NotSeen, Snapshot


class Outcome(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but something will be missing or surprise
    BAD = "bad"  # leases would fail, or walls would not stand
    UNKNOWN = "unknown"  # could not be looked at


@dataclass(frozen=True, slots=True)
class Answer:
    """What one check says."""

    outcome: Outcome
    seen: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a cluster, and why it is asked."""

    name: str
    why: str
    ask: Callable[[Snapshot], Answer]


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one check."""

    name: str
    outcome: Outcome
    seen: str
    why: str
    fix: str


def ok(seen: str) -> Answer:
    return Answer(Outcome.OK, seen)


def warn(seen: str, fix: str) -> Answer:
    return Answer(Outcome.WARN, seen, fix)


def bad(seen: str, fix: str) -> Answer:
    return Answer(Outcome.BAD, seen, fix)


def unknown(seen: str, fix: str) -> Answer:
    return Answer(Outcome.UNKNOWN, seen, fix)


def answer(check: Check, snapshot: Snapshot) -> Finding:
    """Ask one question; what it needs and could not be read makes its answer unknown."""
    try:
        said = check.ask(snapshot)
    except NotSeen as unseen:
        said = unknown(str(unseen), "Run kube_doctor with an administrator's kubeconfig: --kubeconfig FILE.")
    return Finding(check.name, said.outcome, said.seen, check.why, said.fix)


def names(all_of_them: Iterable[str], most: int = 4) -> str:
    """List some names, and say how many more there are."""
    listed = sorted(all_of_them)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
