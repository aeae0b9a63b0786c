"""Timeline of a lease: one dot per step, with durations; future steps are hollow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Transition
from web.portal.leases.lease_table import LeaseRow

S = LeaseState
MAX_STEPS = 5
STEP_WORDS = {
    S.PROVISIONING: gettext_noop("Placed"),
    S.ACTIVE: gettext_noop("Active"),
    S.RELEASING: gettext_noop("Stopped"),
    S.RELEASED: gettext_noop("Released"),
    S.QUEUED: gettext_noop("Queued again"),
    S.STOPPING: gettext_noop("Stopped"),
    S.FAILED: gettext_noop("Failed"),
}
END_REASON_TEXTS = {
    EndReason.BY_TENANT: gettext_noop("by the tenant"),
    EndReason.BY_OPERATOR: gettext_noop("by an operator"),
    EndReason.EXPIRED: gettext_noop("at its end"),
    EndReason.DEVICE_LOST: gettext_noop("its node or GPU was lost"),
    EndReason.PROVISION_TIMEOUT: gettext_noop("not ready in time"),
    EndReason.SPEC_REFUSED: gettext_noop("rejected by the cluster"),
    EndReason.BUDGET: gettext_noop("budget exceeded"),
}


@dataclass(frozen=True)
class TimelineDot:
    """One dot of the timeline: a moment, or the time since the previous dot."""

    label: str
    at: datetime | None = None
    elapsed: timedelta | None = None  # since the dot before
    remaining: timedelta | None = None  # until then
    note: str = ""
    phase: str = ""  # now, next, or empty for the past


def relocation_dots() -> list[TimelineDot]:
    """Return the dots of a lease that is leaving its GPU for another."""
    return [
        TimelineDot(_("Now"), note=_("the workload is being stopped"), phase="now"),
        TimelineDot(_("Placed"), note=_("on its reserved GPU"), phase="next"),
        TimelineDot(_("Active"), note=_("charged from then on"), phase="next"),
    ]


def timeline_dots(row: LeaseRow, passed: Sequence[Transition], *, now: datetime) -> list[TimelineDot]:
    """Return the dots of one lease from its transitions, oldest first."""
    previous = passed[0].at if passed else row.lease.created_at
    found = [TimelineDot(_("Requested"), at=previous)]
    for step in timeline_steps(passed):
        found.append(TimelineDot(step_word(step), elapsed=step.at - previous, note=step_note(step)))
        previous = step.at
    if passed and starts_relocation(passed[-1]):
        return found + relocation_dots()
    return found + present_and_next(row, now)


def timeline_steps(passed: Sequence[Transition]) -> list[Transition]:
    """Return the transitions worth a dot.

    Leaves out the initial queueing, queueing during a relocation, and metering ticks.
    """
    kept = [s for s in passed if s.after in STEP_WORDS and s.before not in (s.after, S.REQUESTED)]
    return [s for s in kept if not is_relocation_queueing(s)][-MAX_STEPS:]


def starts_relocation(step: Transition) -> bool:
    """Return whether the lease leaves its GPU here for another."""
    return step.after == S.STOPPING and step.reason == EndReason.BY_OPERATOR


def is_relocation_queueing(step: Transition) -> bool:
    return step.before == S.STOPPED and step.after == S.QUEUED and step.actor_kind == "system"


def is_node_outage(step: Transition) -> bool:
    """Return whether the lease did not run from here on, because its node was silent."""
    return step.before == S.ACTIVE and step.after == S.PROVISIONING


def step_word(step: Transition) -> str:
    if is_node_outage(step):
        return _("Node unreachable")
    return _("Left its GPU") if starts_relocation(step) else _(STEP_WORDS[S(step.after)])


def step_note(step: Transition) -> str:
    match S(step.after):
        case S.PROVISIONING if step.cause.startswith("moved"):
            return _("on its new GPU")
        case S.PROVISIONING if is_node_outage(step):
            return _("nothing is charged until it runs again")
        case S.PROVISIONING:
            return step.cause.rpartition("/")[2].strip()
        case S.ACTIVE:
            return _("verified")
        case S.STOPPING:
            return _("downtime is not charged") if starts_relocation(step) else _("nothing is charged from then on")
        case S.RELEASING:
            text = END_REASON_TEXTS.get(EndReason(step.reason), "")
            return _(text) if text else ""
        case _:
            return ""


def present_and_next(row: LeaseRow, now: datetime) -> list[TimelineDot]:
    """Return the dots of its current state and what comes next."""
    lease = row.lease
    match S(lease.state):
        case S.QUEUED:
            position_text = (
                _("{place} of {of} in line").format(place=row.queue_position.place, of=row.queue_position.of)
                if row.queue_position
                else "in line"
            )
            return [
                TimelineDot(_("Queued"), elapsed=now - lease.state_since, note=position_text, phase="now"),
                TimelineDot(_("Placed"), note=_("as soon as capacity is free"), phase="next"),
                TimelineDot(_("Active"), note=_("charged from then on"), phase="next"),
            ]
        case S.PROVISIONING:
            percent = lease.progress.get("percent")
            doing = lease.progress.get("text", "starting") + (f", {percent} %" if percent is not None else "")
            return [
                TimelineDot(_("Now"), note=doing, phase="now"),
                TimelineDot(_("Active"), note=_("charged from then on"), phase="next"),
            ]
        case S.ACTIVE:
            running = TimelineDot(_("Now"), elapsed=now - (lease.active_at or lease.state_since), phase="now")
            if (ends_at := lease.must_end_at) is None:
                return [running]
            return [running, TimelineDot(_("Stops"), at=ends_at, remaining=ends_at - now, phase="next")]
        case S.STOPPING:
            return [
                TimelineDot(_("Now"), note=lease.progress.get("text", "shutting down"), phase="now"),
                TimelineDot(_("Kept"), note=_("its volume is kept, its slice is freed"), phase="next"),
            ]
        case S.STOPPED:
            kept = TimelineDot(_("Kept"), elapsed=now - lease.state_since, note=_("nothing is charged"), phase="now")
            return [kept, TimelineDot(_("Started"), note=_("when you start it"), phase="next")]
        case S.RELEASING:
            return [
                TimelineDot(_("Now"), note=lease.progress.get("text", "shutting down"), phase="now"),
                TimelineDot(_("Released"), note=_("its slice is freed"), phase="next"),
            ]
        case _:
            return []
