"""When things happen. A task loads nothing itself: it reads the clock and calls one service."""

from broker.services import examining, knocking, orphans, reconcile
from broker.services.layouts import planning, stepping
from broker.services.leases import leaving, serving
from broker.services.moving import proposing
from broker.services.moving import stepping as moving
from broker.services.volumes import keeping
from ports import clock, doorbell
from ports.doorbell import answering


@answering("broker.step")
def step(lease_id: str, tenant_id: str) -> None:
    reconcile.step(lease_id, tenant_id, now=clock.now())


@answering("broker.serve")
def serve(pool: str) -> None:
    model, _, region = pool.partition("|")
    serving.serve((model, region), now=clock.now())


@answering("broker.knock_all")
def knock_all() -> None:
    for cluster_id in knocking.clusters_to_knock_at():
        doorbell.send("broker.knock", cluster_id, "")


@answering("broker.knock")
def knock(cluster_id: str) -> None:
    knocking.knock(cluster_id, now=clock.now())


@answering("broker.examine")
def examine(cluster_id: str) -> None:
    examining.carry_out(cluster_id, now=clock.now())


@answering("broker.leave")
def leave(lease_id: str, tenant_id: str) -> None:
    leaving.step(lease_id, tenant_id, now=clock.now())


@answering("broker.volume")
def volume(volume_id: str, tenant_id: str) -> None:
    keeping.step(volume_id, tenant_id, now=clock.now())


@answering("broker.sweep")
def sweep() -> None:
    """Repeat whatever hint was lost: every lease, volume, change of a layout and plan that is due, every queue."""
    now = clock.now()
    layouts_and_plans = (*stepping.due(now=now), *moving.due(now=now))
    for hint in (*reconcile.due(now=now), *layouts_and_plans, *keeping.due(now=now)):
        doorbell.send(*hint)


@answering("broker.sweep_all")
def sweep_all(_subject: str = "") -> None:
    """Look at every live lease, at how nodes are cut, who could be moved, and what the cluster runs without a lease."""
    now = clock.now()
    plans = (*planning.clusters_to_plan(), *proposing.clusters_to_plan(now=now))
    for hint in (*reconcile.all_live(), *plans):
        doorbell.send(*hint)
    orphans.remove_all(now=now)


@answering("broker.orphans")
def remove_orphans(cluster_id: str) -> None:
    orphans.remove_in(cluster_id, now=clock.now())


@answering("broker.recut")
def recut(change_id: str) -> None:
    stepping.step(change_id, now=clock.now())


@answering("broker.plan_layouts")
def plan_layouts(cluster_id: str) -> None:
    planning.carry_out(cluster_id, now=clock.now())


@answering("broker.move")
def move(plan_id: str) -> None:
    moving.step(plan_id, now=clock.now())


@answering("broker.plan_moves")
def plan_moves(cluster_id: str) -> None:
    proposing.propose(cluster_id, now=clock.now())
