"""The steps of cutting a node anew: what to do next, decided from where the change stands and what the node says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum


class Step(StrEnum):
    PLANNED = "planned"  # waits for a yes
    CLOSING = "closing"  # nothing new is placed; the taint is to be set
    DRAINING = "draining"  # until the last lease has left by itself
    LABELLING = "labelling"  # the wanted layout is to be told to the node
    CUTTING = "cutting"  # the node is at it
    NUDGING = "nudging"  # it was silent too long: the same layout under another name, and back
    OPENING = "opening"  # it is done: the taint is to go, then the node is sold again
    DONE = "done"
    QUARANTINED = "quarantined"  # it failed; the node stays closed until somebody decides
    CANCELLING = "cancelling"  # called off before the node was told: the taint is to go
    CANCELLED = "cancelled"


S = Step
NEXT: dict[Step, frozenset[Step]] = {
    S.PLANNED: frozenset({S.CLOSING, S.CANCELLED}),
    S.CLOSING: frozenset({S.DRAINING, S.CANCELLING}),
    S.DRAINING: frozenset({S.LABELLING, S.CANCELLING, S.QUARANTINED}),
    S.LABELLING: frozenset({S.CUTTING, S.DRAINING, S.NUDGING, S.QUARANTINED}),
    S.CUTTING: frozenset({S.NUDGING, S.OPENING, S.QUARANTINED}),
    S.NUDGING: frozenset({S.CUTTING, S.QUARANTINED}),
    S.OPENING: frozenset({S.DONE, S.QUARANTINED}),
    S.DONE: frozenset(),
    S.QUARANTINED: frozenset(),
    S.CANCELLING: frozenset({S.CANCELLED}),
    S.CANCELLED: frozenset(),
}
OVER = frozenset(step for step, following in NEXT.items() if not following)
CANCELLABLE = frozenset({S.PLANNED, S.CLOSING, S.DRAINING})
CLOSED = frozenset(Step) - {
    S.PLANNED,
    S.DONE,
    S.CANCELLED,
}  # while a change stands there, nothing new is placed
# The node's own report of its cards is worth nothing meanwhile.
BLIND = frozenset({S.LABELLING, S.CUTTING, S.NUDGING, S.OPENING})

PENDING_FOR = timedelta(minutes=10)
REBOOTING_FOR = timedelta(minutes=20)
BETWEEN_NAMES = timedelta(seconds=5)
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """What a node said of its layout at a moment."""

    config: str = ""  # the layout it was told
    state: str = ""  # "", pending, rebooting, success or failed
    version: str = ""  # of the node's object: a label is only set on what was seen
    tainted: bool = False
    pods: int = 0  # pods of tenants that hold a slice of it, whatever we believe
    slots: Mapping[str, int] = field(default_factory=dict)  # what it offers: profile to count
    there: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to become of a node: the layout's two names and what it then offers."""

    config: str
    alias: str
    slots: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a change stands when its node is looked at."""

    step: Step
    since: timedelta  # how long it has been in its step
    held: int = 0  # places that leases hold on the node
    attempts: int = 0  # how often the node began
    looked: bool = False  # somebody looked in this very step before, and may have told the node and died


@dataclass(frozen=True, slots=True)
class Verdict:
    """The step to take, and why in a plain sentence; before it is taken the node is told or tainted."""

    step: Step
    why: str
    tell: str = ""
    taint: bool = False


def judge(at: Standing, seen: NodeSeen, wanted: Wanted) -> Verdict:
    """Say what becomes of a change after a look at its node; the same step means: look again."""
    if not seen.there:
        return Verdict(S.QUARANTINED, "the node is no longer in the cluster")
    if at.step is S.DRAINING:
        return _drained(at, seen)
    if at.step is S.LABELLING:
        return _labelled(at, seen, wanted)
    if at.step is S.CUTTING:
        return _cut(at, seen, wanted)
    if at.step is S.NUDGING:
        return _nudged(seen, wanted)
    raise ValueError(f"a change that is {at.step} asks its node nothing")


def _drained(at: Standing, seen: NodeSeen) -> Verdict:
    if at.held or seen.pods:
        leases = f"{at.held} place{'s are' if at.held != 1 else ' is'} still held"
        pods = f"{seen.pods} pod{'s' if seen.pods != 1 else ''} still there"
        return Verdict(S.DRAINING, f"{leases}; {pods}", taint=not seen.tainted)
    if not seen.tainted:
        return Verdict(S.DRAINING, "the taint is set again: somebody took it away", taint=True)
    return Verdict(S.LABELLING, "nobody holds a place on it any more")


def _labelled(at: Standing, seen: NodeSeen, wanted: Wanted) -> Verdict:
    if seen.config == wanted.config:
        if at.looked or (seen.state == "success" and dict(seen.slots) == dict(wanted.slots)):
            return Verdict(S.CUTTING, f"told to become {wanted.config}")
        # Told so by an earlier change that failed: the node would not even notice.
        return Verdict(S.NUDGING, f"it was told to become {wanted.config} before, in vain")
    if at.held or seen.pods or not seen.tainted:  # whoever started a pod there is not thrown out
        return Verdict(S.DRAINING, "somebody came back before it was told")
    return Verdict(S.CUTTING, f"told to become {wanted.config}", tell=wanted.config)


def _cut(at: Standing, seen: NodeSeen, wanted: Wanted) -> Verdict:
    if seen.config != wanted.config:
        return Verdict(S.QUARANTINED, f"somebody else told it to become {seen.config or 'nothing'}")
    if seen.state == "failed":
        return Verdict(S.QUARANTINED, "the node says that it failed to cut its cards")
    if seen.state == "success" and dict(seen.slots) == dict(wanted.slots):
        return Verdict(S.OPENING, "the node offers exactly what was wanted")
    if at.since < (REBOOTING_FOR if seen.state == "rebooting" else PENDING_FOR):
        return Verdict(S.CUTTING, _word(seen))
    if at.attempts < ATTEMPTS:
        return Verdict(S.NUDGING, f"{_word(seen)} for {at.since.total_seconds() / 60:.0f} min: told again")
    return Verdict(S.QUARANTINED, f"{_word(seen)} after being told {at.attempts} times")


def _word(seen: NodeSeen) -> str:
    if seen.state == "success":
        return "done, but it does not offer what was wanted yet"
    return f"the node says {seen.state}" if seen.state else "the node has not begun"


def _nudged(seen: NodeSeen, wanted: Wanted) -> Verdict:
    if seen.config == wanted.alias:
        return Verdict(S.CUTTING, f"told to become {wanted.config} again", tell=wanted.config)
    if seen.config == wanted.config:
        return Verdict(S.NUDGING, "told the same under another name", tell=wanted.alias)
    return Verdict(S.QUARANTINED, f"somebody else told it to become {seen.config or 'nothing'}")
