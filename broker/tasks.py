"""When things happen. A task loads nothing itself: it reads the clock and calls one service."""

from broker.services import reconcile
from broker.services.leases import placing
from ports import clock, doorbell
from ports.doorbell import answering


@answering("broker.step")
def step(lease_id: str, tenant_id: str) -> None:
    reconcile.step(lease_id, tenant_id, now=clock.now())


@answering("broker.serve")
def serve(pool: str) -> None:
    model, _, region = pool.partition("|")
    placing.serve((model, region), now=clock.now())


@answering("broker.sweep")
def sweep() -> None:
    """Repeat whatever hint was lost: every lease that is due, every queue."""
    for hint in reconcile.due(now=clock.now()):
        doorbell.send(*hint)


@answering("broker.sweep_all")
def sweep_all(_subject: str = "") -> None:
    """Look at every live lease, and at what the cluster runs without one."""
    for hint in reconcile.all_live():
        doorbell.send(*hint)
    reconcile.remove_orphans(now=clock.now())
