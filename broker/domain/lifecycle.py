"""The whole life of a lease: which state may follow which, and what a state means for capacity and money."""

from broker.domain.states import LeaseState

S = LeaseState

NEXT: dict[LeaseState, frozenset[LeaseState]] = {
    S.REQUESTED: frozenset({S.QUEUED, S.RELEASING}),
    S.QUEUED: frozenset({S.PROVISIONING, S.RELEASING}),
    # Back to the queue: the node was lost before the lease was ever active, so it is placed anew.
    S.PROVISIONING: frozenset({S.ACTIVE, S.QUEUED, S.RELEASING}),
    # Active to active is the metering tick: it closes a segment so that its seconds can be charged.
    S.ACTIVE: frozenset({S.ACTIVE, S.STOPPING, S.RELEASING}),
    S.STOPPING: frozenset({S.STOPPED, S.RELEASING}),
    S.STOPPED: frozenset({S.QUEUED, S.RELEASING}),
    S.RELEASING: frozenset({S.RELEASED, S.FAILED}),
    S.RELEASED: frozenset(),
    S.FAILED: frozenset({S.RELEASING}),
}

# A failed lease keeps its slice: nobody has confirmed that the card is free of it.
HOLDS_CAPACITY = frozenset({S.PROVISIONING, S.ACTIVE, S.STOPPING, S.RELEASING, S.FAILED})
# Nothing is under way: the reconciler and the pages may look less often.
SETTLED = frozenset({S.ACTIVE, S.STOPPED, S.RELEASED, S.FAILED})
# Nobody's lease ends without a word: a step to one of these carries an EndReason.
ENDS = frozenset({S.RELEASING, S.RELEASED, S.FAILED})
# Slow starts and slow ends are our cost.
BILLABLE = frozenset({S.ACTIVE})


def may_become(before: LeaseState, after: LeaseState) -> bool:
    """Tell whether the lifecycle has a step from one state to the other."""
    return after in NEXT[before]
