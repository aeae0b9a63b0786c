"""When a silent node was heard last: its lease says so, which is renewed far more often than its status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from broker.provisioners.base import Seen
from broker.provisioners.kubernetes.nodes import silent
from broker.provisioners.kubernetes.objects import Node

TOLD = datetime(2026, 7, 1, 12, tzinfo=UTC)  # its last whole status, sent every few minutes
RENEWED, NOTICED = TOLD + timedelta(seconds=200), TOLD + timedelta(seconds=240)


def node(ready: str, **moments: Any) -> dict[str, Node]:
    condition = {"type": "Ready", "status": ready, **moments}
    body = {"metadata": {"name": "n1"}, "status": {"conditions": [condition]}}
    return {"n1": msgspec.json.decode(msgspec.json.encode(body), type=Node)}


@pytest.mark.parametrize(
    ("renewed", "moments", "last"),
    [
        (RENEWED, {"lastHeartbeatTime": TOLD, "lastTransitionTime": NOTICED}, RENEWED),
        (None, {"lastHeartbeatTime": TOLD, "lastTransitionTime": NOTICED}, TOLD),
        (None, {"lastTransitionTime": NOTICED}, NOTICED),
    ],
)
def test_a_silent_node_was_heard_last_when_its_lease_was_renewed(
    renewed: datetime | None, moments: dict[str, datetime], last: datetime
) -> None:
    seen = silent(["n1"], node("Unknown", **moments), {"n1": renewed} if renewed else {})
    assert seen
    assert (seen.seen, seen.text) == (Seen.LOST, "node n1 lost contact")
    assert (seen.last_seen, seen.proven_until) == (last, last)


def test_a_node_that_is_gone_was_heard_last_when_its_lease_was_renewed() -> None:
    seen = silent(["n1"], {}, {"n1": RENEWED})
    assert seen
    assert (seen.seen, seen.text) == (Seen.LOST, "node n1 is no longer in the cluster")
    assert (seen.last_seen, seen.proven_until) == (RENEWED, RENEWED)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_node_that_says_how_it_is_is_heard(ready: str) -> None:
    assert silent(["n1"], node(ready, lastHeartbeatTime=TOLD), {"n1": RENEWED}) is None
