"""Transitions of a lease, and what each state means for capacity and money."""

from broker.domain.lifecycle.states import LeaseState

S = LeaseState

NEXT_STATES: dict[LeaseState, frozenset[LeaseState]] = {
    S.REQUESTED: frozenset({S.QUEUED, S.RELEASING}),
    S.QUEUED: frozenset({S.PROVISIONING, S.RELEASING}),
    # Back to the queue: the node was lost before the lease was active, so it is placed again.
    S.PROVISIONING: frozenset({S.ACTIVE, S.QUEUED, S.RELEASING}),
    # Active to active is the metering tick: it closes a segment so that its seconds can be charged.
    # Back to provisioning: its node was silent for a while, in which nothing proved that it ran.
    S.ACTIVE: frozenset({S.ACTIVE, S.PROVISIONING, S.STOPPING, S.RELEASING}),
    S.STOPPING: frozenset({S.STOPPED, S.RELEASING}),
    S.STOPPED: frozenset({S.QUEUED, S.RELEASING}),
    S.RELEASING: frozenset({S.RELEASED, S.FAILED}),
    S.RELEASED: frozenset(),
    S.FAILED: frozenset({S.RELEASING}),
}

# A failed lease keeps its slice: its removal from the GPU is not confirmed.
HOLDS_CAPACITY = frozenset({S.PROVISIONING, S.ACTIVE, S.STOPPING, S.RELEASING, S.FAILED})
# Nothing is in progress: the reconciler and the pages may poll less often.
SETTLED_STATES = frozenset({S.ACTIVE, S.STOPPED, S.RELEASED, S.FAILED})
# A transition to one of these carries an EndReason.
ENDING_STATES = frozenset({S.RELEASING, S.RELEASED, S.FAILED})
# Only active time is billed: slow starts and slow ends are our cost.
BILLABLE_STATES = frozenset({S.ACTIVE})
