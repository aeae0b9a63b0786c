"""Steps of repartitioning a node, and the decision which step comes next.

It depends on the progress of the change and on what the node reports.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum


class RepartitionStep(StrEnum):
    PLANNED = "planned"  # waits for approval
    CLOSING = "closing"  # nothing new is placed; the taint must be set
    DRAINING = "draining"  # waits until the last lease has ended by itself
    CONFIGURING = "configuring"  # the wanted layout must be set on the node
    REPARTITIONING = "repartitioning"  # the node is repartitioning
    RETRYING = "retrying"  # it took too long: set the same layout under its other name, and back
    REOPENING = "reopening"  # it is done: the taint must be removed, then the node is sold again
    DONE = "done"
    QUARANTINED = "quarantined"  # it failed; the node stays closed until an operator decides
    CANCELLING = "cancelling"  # cancelled before the node was configured: the taint must be removed
    CANCELLED = "cancelled"


S = RepartitionStep
NEXT_STEPS: dict[RepartitionStep, frozenset[RepartitionStep]] = {
    S.PLANNED: frozenset({S.CLOSING, S.CANCELLED}),
    S.CLOSING: frozenset({S.DRAINING, S.CANCELLING}),
    S.DRAINING: frozenset({S.CONFIGURING, S.CANCELLING, S.QUARANTINED}),
    S.CONFIGURING: frozenset({S.REPARTITIONING, S.DRAINING, S.RETRYING, S.QUARANTINED}),
    S.REPARTITIONING: frozenset({S.RETRYING, S.REOPENING, S.QUARANTINED}),
    S.RETRYING: frozenset({S.REPARTITIONING, S.QUARANTINED}),
    S.REOPENING: frozenset({S.DONE, S.QUARANTINED}),
    S.DONE: frozenset(),
    S.QUARANTINED: frozenset(),
    S.CANCELLING: frozenset({S.CANCELLED}),
    S.CANCELLED: frozenset(),
}
FINAL_STEPS = frozenset(step for step, following in NEXT_STEPS.items() if not following)
CANCELLABLE_STEPS = frozenset({S.PLANNED, S.CLOSING, S.DRAINING})
CLOSED_STEPS = frozenset(RepartitionStep) - {
    S.PLANNED,
    S.DONE,
    S.CANCELLED,
}  # in these steps nothing new is placed on the node
# In these steps the node's report of its GPUs is unreliable.
UNRELIABLE_INVENTORY_STEPS = frozenset({S.CONFIGURING, S.REPARTITIONING, S.RETRYING, S.REOPENING})

PENDING_TIMEOUT = timedelta(minutes=10)
REBOOT_TIMEOUT = timedelta(minutes=20)
RENAME_PAUSE = timedelta(seconds=5)
MAX_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ObservedLayout:
    """What a node reported of its layout at a moment."""

    config: str = ""  # name of the layout it was set to
    state: str = ""  # "", pending, rebooting, success or failed
    version: str = ""  # resource version of the node: a label is only set on this version
    tainted: bool = False
    pods: int = 0  # pods that hold a slice of it, whatever our database says
    slots: Mapping[str, int] = field(default_factory=dict)  # what it offers: profile to count
    exists: bool = True


@dataclass(frozen=True, slots=True)
class TargetLayout:
    """The target layout of a node: its two names and what it offers."""

    config: str
    alias: str
    slots: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RepartitionProgress:
    """The progress of a change when its node is observed."""

    step: RepartitionStep
    since: timedelta  # time since the step began
    held_slots: int = 0  # slots that leases hold on the node
    attempts: int = 0  # how often the node was set to the layout
    observed_before: bool = False  # this step was observed before; that worker may have configured the node and died


@dataclass(frozen=True, slots=True)
class RepartitionDecision:
    """The next step with its reason; the node is configured or tainted first."""

    step: RepartitionStep
    reason: str
    config_to_apply: str = ""
    taint: bool = False


def decide_next_step(
    progress: RepartitionProgress, observed: ObservedLayout, wanted: TargetLayout
) -> RepartitionDecision:
    """Return the next step after observing the node.

    The same step means: observe it again later.
    """
    if not observed.exists:
        return RepartitionDecision(S.QUARANTINED, "the node is no longer in the cluster")
    if progress.step is S.DRAINING:
        return _after_draining(progress, observed)
    if progress.step is S.CONFIGURING:
        return _after_configuring(progress, observed, wanted)
    if progress.step is S.REPARTITIONING:
        return _after_repartitioning(progress, observed, wanted)
    if progress.step is S.RETRYING:
        return _after_retrying(observed, wanted)
    raise ValueError(f"a change that is {progress.step} asks its node nothing")


def _after_draining(progress: RepartitionProgress, observed: ObservedLayout) -> RepartitionDecision:
    if progress.held_slots or observed.pods:
        leases = f"{progress.held_slots} slice{'s are' if progress.held_slots != 1 else ' is'} still in use"
        pods = f"{observed.pods} pod{'s' if observed.pods != 1 else ''} still running"
        return RepartitionDecision(S.DRAINING, f"{leases}; {pods}", taint=not observed.tainted)
    if not observed.tainted:
        return RepartitionDecision(S.DRAINING, "the taint was removed; it is set again", taint=True)
    return RepartitionDecision(S.CONFIGURING, "no leases are left on the node")


def _after_configuring(
    progress: RepartitionProgress, observed: ObservedLayout, wanted: TargetLayout
) -> RepartitionDecision:
    if observed.config == wanted.config:
        if progress.observed_before or (observed.state == "success" and dict(observed.slots) == dict(wanted.slots)):
            return RepartitionDecision(S.REPARTITIONING, f"config {wanted.config} is requested")
        # An earlier failed change set the same name: the node would not react to it.
        return RepartitionDecision(S.RETRYING, f"config {wanted.config} was requested before and failed")
    if progress.held_slots or observed.pods or not observed.tainted:  # a pod that started there is not evicted
        return RepartitionDecision(S.DRAINING, "a pod returned before the config was requested")
    return RepartitionDecision(S.REPARTITIONING, f"config {wanted.config} is requested", config_to_apply=wanted.config)


def _after_repartitioning(
    progress: RepartitionProgress, observed: ObservedLayout, wanted: TargetLayout
) -> RepartitionDecision:
    if observed.config != wanted.config:
        return RepartitionDecision(
            S.QUARANTINED, f"the requested config was changed to {observed.config or 'nothing'} by someone else"
        )
    if observed.state == "failed":
        return RepartitionDecision(S.QUARANTINED, "the node failed to repartition its GPUs")
    if observed.state == "success" and dict(observed.slots) == dict(wanted.slots):
        return RepartitionDecision(S.REOPENING, "the node offers the new layout")
    if progress.since < (REBOOT_TIMEOUT if observed.state == "rebooting" else PENDING_TIMEOUT):
        return RepartitionDecision(S.REPARTITIONING, _describe_state(observed))
    if progress.attempts < MAX_ATTEMPTS:
        return RepartitionDecision(
            S.RETRYING,
            f"{_describe_state(observed)} for {progress.since.total_seconds() / 60:.0f} min: requested again",
        )
    return RepartitionDecision(S.QUARANTINED, f"{_describe_state(observed)} after {progress.attempts} requests")


def _describe_state(observed: ObservedLayout) -> str:
    if observed.state == "success":
        return "done, but the node does not offer the new layout yet"
    return f"the node is {observed.state}" if observed.state else "the node has not started"


def _after_retrying(observed: ObservedLayout, wanted: TargetLayout) -> RepartitionDecision:
    if observed.config == wanted.alias:
        return RepartitionDecision(
            S.REPARTITIONING, f"config {wanted.config} is requested again", config_to_apply=wanted.config
        )
    if observed.config == wanted.config:
        return RepartitionDecision(
            S.RETRYING, "the same config is requested under another name", config_to_apply=wanted.alias
        )
    return RepartitionDecision(
        S.QUARANTINED, f"the requested config was changed to {observed.config or 'nothing'} by someone else"
    )
