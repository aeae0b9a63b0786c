"""A node is lost at noon: charges, and where the work continues."""

from datetime import timedelta

from broker.models import NodeState
from broker.services.inventory.hardware import SimulatedRack
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_tenant,
    held_allocations,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    transitions_of,
)

TWO_NODES = SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1)


def test_a_lost_node_ends_its_lease_and_takes_the_queued_one_after_its_return(sim: Simulation) -> None:
    create_fleet(TWO_NODES)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")

    # Each tenant runs on a node of its own; Kestrel has one more request in the queue.
    first = sim.create_lease(kestrel, offering("whole-gpu"))
    other = sim.create_lease(swift, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run(60)
    assert node_of(first) != node_of(other)
    assert reload_lease(waiting).state == "queued"

    # Noon: Kestrel's node says nothing any more. For half a minute that may be a hiccup.
    lost, unreachable_since = node_of(first), sim.now.replace(microsecond=0)
    set_node_state(lost, NodeState.LOST, sim)
    sim.run_with_sweeps(20)
    assert (reload_lease(first).state, list(reload_lease(first).conditions)) == ("active", ["unreachable"])

    # Then it is over, charged up to the last sign of life and not a second longer.
    sim.run_with_sweeps(60)
    assert (reload_lease(first).end_reason, reload_lease(first).ended_at) == ("device_lost", unreachable_since)
    assert f"node {lost.name} is unreachable" in transitions_of(first)[-2].cause

    # Swift noticed nothing. What waits is not put on a node that is not there.
    assert reload_lease(other).state == "active"
    assert (reload_lease(waiting).state, held_allocations(waiting)) == ("queued", [])

    # The node is back, and what waited starts on it.
    sim.run(600)
    set_node_state(lost, NodeState.READY, sim)
    sim.run_with_sweeps(30)
    assert (reload_lease(waiting).state, node_of(waiting)) == ("active", lost)
    assert reload_lease(waiting).active_at
    assert reload_lease(waiting).active_at > unreachable_since + timedelta(minutes=10)
