"""The last sign of life of a lost node."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from broker.provisioners.base import ObservedState
from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.observe.node_health import find_lost_node

REPORTED = datetime(2026, 7, 1, 12, tzinfo=UTC)  # its last whole status, sent every few minutes
RENEWED, NOTICED = REPORTED + timedelta(seconds=200), REPORTED + timedelta(seconds=240)


def node(ready: str, **moments: Any) -> dict[str, ClusterNode]:
    condition = {"type": "Ready", "status": ready, **moments}
    body = {"metadata": {"name": "n1"}, "status": {"conditions": [condition]}}
    return {"n1": msgspec.json.decode(msgspec.json.encode(body), type=ClusterNode)}


@pytest.mark.parametrize(
    ("renewed", "moments", "last"),
    [
        (RENEWED, {"lastHeartbeatTime": REPORTED, "lastTransitionTime": NOTICED}, RENEWED),
        (None, {"lastHeartbeatTime": REPORTED, "lastTransitionTime": NOTICED}, REPORTED),
        (None, {"lastTransitionTime": NOTICED}, NOTICED),
    ],
)
def test_an_unreachable_node_is_last_seen_at_its_lease_renewal_or_else_its_condition(
    renewed: datetime | None, moments: dict[str, datetime], last: datetime
) -> None:
    seen = find_lost_node(["n1"], node("Unknown", **moments), {"n1": renewed} if renewed else {})
    assert seen
    assert (seen.seen, seen.text) == (ObservedState.LOST, "node n1 is unreachable")
    assert (seen.last_seen, seen.proven_until) == (last, last)


def test_a_removed_node_is_last_seen_at_its_lease_renewal() -> None:
    seen = find_lost_node(["n1"], {}, {"n1": RENEWED})
    assert seen
    assert (seen.seen, seen.text) == (ObservedState.LOST, "node n1 is no longer in the cluster")
    assert (seen.last_seen, seen.proven_until) == (RENEWED, RENEWED)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_node_that_reports_its_readiness_is_not_lost(ready: str) -> None:
    assert find_lost_node(["n1"], node(ready, lastHeartbeatTime=REPORTED), {"n1": RENEWED}) is None
