"""Kinds of cluster observations, as far as a lease's next step depends on them.

Reads only values that are loaded already: neither the database nor a cluster is asked.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import Observation, ObservedState
from broker.services.leases.lifecycle import termination

UNANSWERED_TIMEOUT = timedelta(seconds=45)  # after this a lease that never started there tries another cluster
LOST_AFTER = timedelta(seconds=30)  # after this a lost lease ends; of an unreachable node see its setting
EARLIER_ATTEMPT_TEXT = "its pods on an earlier slice are still ending"


class ObservationKind(StrEnum):
    """Classify an observation: the observed state, and whether a time limit has passed."""

    READY = "ready"
    NOT_READY = "not_ready"  # it runs and is not ready
    NOT_RUNNING = "not_running"  # created, or waiting for its pod's replacement
    REFUSED = "refused"
    LOST = "lost"
    ENDED = "ended"
    GONE = "gone"
    UNANSWERED = "unanswered"  # its cluster never answered within the time limit
    OVERDUE = "overdue"  # the time limit of its state has passed: provisioning, or its own end


K = ObservationKind


def classify_observation(lease: Lease, observation: Observation, now: datetime) -> ObservationKind:
    """Return the one kind of an observation of a lease in its state."""
    kind = _observed_kind(observation)
    match LeaseState(lease.state):
        case LeaseState.PROVISIONING if kind not in (K.READY, K.REFUSED, K.LOST):
            if _is_unanswered_too_long(lease, observation, now):
                return K.UNANSWERED
            if kind is not K.ENDED and _is_provisioning_too_long(lease, now):
                return K.OVERDUE
        case LeaseState.ACTIVE if termination.is_over(lease, _end_counts_from(observation, kind, now)):
            return K.OVERDUE
    return kind


def _observed_kind(observation: Observation) -> ObservationKind:
    if observation.seen is ObservedState.PENDING:
        return K.NOT_READY if observation.running else K.NOT_RUNNING
    return ObservationKind(observation.seen.value)


def _end_counts_from(observation: Observation, kind: ObservationKind, now: datetime) -> datetime:
    """Return the moment that an active lease's end is compared with."""
    if kind is K.ENDED:
        return observation.last_seen or now  # the deadline of its job may have ended it
    if kind is K.NOT_RUNNING:
        return now - LOST_AFTER  # what it was doing at its end may be known by then
    return now


def _is_provisioning_too_long(lease: Lease, now: datetime) -> bool:
    return now - lease.state_since > timedelta(seconds=settings.PROVISION_TIMEOUT_S)


def _is_unanswered_too_long(lease: Lease, observation: Observation, now: datetime) -> bool:
    """Return whether the cluster never answered about this lease within the time limit.

    A lease that was heard of may start at any moment, and is waited for: it must not run twice.
    """
    return not observation.answered and not was_ever_answered(lease) and now - lease.state_since > UNANSWERED_TIMEOUT


def was_ever_answered(lease: Lease) -> bool:
    """Return whether the cluster has ever answered about the current provisioning attempt."""
    answered = lease.progress.get("answered", True) and lease.progress.get("text") != EARLIER_ATTEMPT_TEXT
    return bool(lease.progress and answered)
