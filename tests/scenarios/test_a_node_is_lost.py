"""A node falls silent at noon: who pays for what, and where the work goes on."""

from datetime import timedelta

from broker.models import NodeState
from broker.services.inventory import Rack
from tests.world import MODEL, REGION, Life, fleet, fresh, held, home, ledger, node_of, offering, set_node

TWO_NODES = Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1)


def test_a_node_is_lost_and_comes_back(life: Life) -> None:
    fleet(TWO_NODES)
    kestrel, swift = home("Kestrel"), home("Swift")

    # Each tenant runs on a node of its own; Kestrel has one more request in the queue.
    first = life.lease(kestrel, offering("card"))
    other = life.lease(swift, offering("card"))
    waiting = life.ask(kestrel, offering("card"))
    life.run(60)
    assert node_of(first) != node_of(other)
    assert fresh(waiting).state == "queued"

    # Noon: Kestrel's node says nothing any more. For half a minute that may be a hiccup.
    lost, silent_since = node_of(first), life.now.replace(microsecond=0)
    set_node(lost, NodeState.LOST, life)
    life.go(20)
    assert (fresh(first).state, list(fresh(first).conditions)) == ("active", ["unreachable"])

    # Then it is over, charged up to the last sign of life and not a second longer.
    life.go(60)
    assert (fresh(first).end_reason, fresh(first).ended_at) == ("device_lost", silent_since)
    assert f"node {lost.name} lost contact" in ledger(first)[-2].cause

    # Swift noticed nothing. What waits is not put on a node that is not there.
    assert fresh(other).state == "active"
    assert (fresh(waiting).state, held(waiting)) == ("queued", [])

    # The node is back, and what waited starts on it.
    life.run(600)
    set_node(lost, NodeState.READY, life)
    life.go(30)
    assert (fresh(waiting).state, node_of(waiting)) == ("active", lost)
    assert fresh(waiting).active_at
    assert fresh(waiting).active_at > silent_since + timedelta(minutes=10)
