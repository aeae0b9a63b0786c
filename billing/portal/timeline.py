"""A lease's life as dots with durations; what is still to come is hollow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.portal.rows import Row
from broker.domain.states import EndReason, LeaseState
from broker.models import Transition

S = LeaseState
MOST = 5
WORDS = {
    S.PROVISIONING: "Placed",
    S.ACTIVE: "Active",
    S.RELEASING: "Stopped",
    S.RELEASED: "Released",
    S.QUEUED: "Queued again",
    S.STOPPING: "Stopped",
    S.FAILED: "Failed",
}
WHY = {
    EndReason.BY_TENANT: "by the tenant",
    EndReason.BY_OPERATOR: "by an operator",
    EndReason.EXPIRED: "at its end",
    EndReason.DEVICE_LOST: "its card was lost",
    EndReason.PROVISION_TIMEOUT: "not ready in time",
    EndReason.SPEC_REFUSED: "refused by the cluster",
    EndReason.BUDGET: "no room in its budget",
}


@dataclass(frozen=True)
class Dot:
    """One dot: a moment or the time since the one before, and a word about it."""

    word: str
    at: datetime | None = None
    took: timedelta | None = None  # since the dot before
    left: timedelta | None = None  # until then
    note: str = ""
    when: str = ""  # now, next, or nothing for what has passed


CROSSING = [
    Dot("Now", note="its program is being stopped", when="now"),
    Dot("Placed", note="on the card that is held for it", when="next"),
    Dot("Active", note="charged from then on", when="next"),
]


def dots(row: Row, passed: Sequence[Transition], *, now: datetime) -> list[Dot]:
    """Return the dots of one lease from its transitions, oldest first."""
    previous = passed[0].at if passed else row.lease.created_at
    found = [Dot("Requested", at=previous)]
    for step in landmarks(passed):
        found.append(Dot(word(step), took=step.at - previous, note=note(step)))
        previous = step.at
    if passed and sets_off(passed[-1]):
        return found + CROSSING
    return found + ahead(row, now)


def landmarks(passed: Sequence[Transition]) -> list[Transition]:
    """Leave out the queue that everybody passes, one on the way to another card too, and the ticks of the meter."""
    kept = [s for s in passed if s.after in WORDS and s.before not in (s.after, S.REQUESTED)]
    return [s for s in kept if not crosses(s)][-MOST:]


def sets_off(step: Transition) -> bool:
    """Tell whether a lease leaves its card here for another."""
    return step.after == S.STOPPING and step.reason == EndReason.BY_OPERATOR


def crosses(step: Transition) -> bool:
    return step.before == S.STOPPED and step.after == S.QUEUED and step.actor_kind == "system"


def word(step: Transition) -> str:
    return "Left its card" if sets_off(step) else WORDS[S(step.after)]


def note(step: Transition) -> str:
    match S(step.after):
        case S.PROVISIONING if step.cause.startswith("moved"):
            return "on its new card"
        case S.PROVISIONING:
            return step.cause.rpartition("/")[2].strip()
        case S.ACTIVE:
            return "verified"
        case S.STOPPING:
            return "not charged on the way" if sets_off(step) else "nothing is charged from then on"
        case S.RELEASING:
            return WHY.get(EndReason(step.reason), "")
        case _:
            return ""


def ahead(row: Row, now: datetime) -> list[Dot]:
    """Return where it stands now and what comes next."""
    lease = row.lease
    match S(lease.state):
        case S.QUEUED:
            where = f"{row.position.place} of {row.position.of} in line" if row.position else "in line"
            return [
                Dot("Queued", took=now - lease.at, note=where, when="now"),
                Dot("Placed", note="as soon as there is room", when="next"),
                Dot("Active", note="charged from then on", when="next"),
            ]
        case S.PROVISIONING:
            percent = lease.progress.get("percent")
            doing = lease.progress.get("text", "starting") + (f", {percent} %" if percent is not None else "")
            return [
                Dot("Now", note=doing, when="now"),
                Dot("Active", note="charged from then on", when="next"),
            ]
        case S.ACTIVE:
            running = Dot("Now", took=now - (lease.active_at or lease.at), when="now")
            if lease.ends_at is None:
                return [running]
            return [running, Dot("Stops", at=lease.ends_at, left=lease.ends_at - now, when="next")]
        case S.STOPPING:
            return [
                Dot("Now", note=lease.progress.get("text", "shutting down"), when="now"),
                Dot("Kept", note="its volume stays, its slice is free again", when="next"),
            ]
        case S.STOPPED:
            kept = Dot("Kept", took=now - lease.at, note="nothing is charged", when="now")
            return [kept, Dot("Started", note="whenever you say", when="next")]
        case S.RELEASING:
            return [
                Dot("Now", note=lease.progress.get("text", "shutting down"), when="now"),
                Dot("Released", note="its slice is free again", when="next"),
            ]
        case _:
            return []
