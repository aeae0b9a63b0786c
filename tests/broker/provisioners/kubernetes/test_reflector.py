"""The reflector: lists, watches, relists and backoff."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from broker.provisioners.kubernetes.agent import event_buffer
from broker.provisioners.kubernetes.agent.event_buffer import EventBuffer
from broker.provisioners.kubernetes.client import objects, reflector
from broker.provisioners.kubernetes.client.kinds import POD, Kind
from broker.provisioners.kubernetes.client.reflector import Reflector
from ports.rng import Rng
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)


class RecordingListener:
    """A listener that records events and stops the reflector after a number of them."""

    def __init__(self, most: int) -> None:
        self.words: list[tuple[str, Any]] = []
        self.most = most

    def going(self) -> bool:
        return len(self.words) < self.most

    def begun(self, kind: Kind) -> None:
        self.pages: list[str] = []

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self.pages += [json.loads(bytes(item))["metadata"]["name"] for item in items]

    def listed(self, kind: Kind, version: int) -> None:
        self.words.append(("LISTED", (self.pages, version)))

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        self.words.append((how, (json.loads(bytes(item))["metadata"]["name"], version)))

    def heard(self, kind: Kind, version: int) -> None:
        self.words.append(("HEARD", version))


def pod(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def listing(*pods: dict[str, Any], version: int) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"resourceVersion": str(version)}, "items": list(pods)})


def stream(*events: tuple[str, dict[str, Any]]) -> ScriptedAnswer:
    lines = (json.dumps({"type": how, "object": what}).encode() + b"\n" for how, what in events)
    return ScriptedAnswer(chunks=tuple(lines))


GONE = ("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
Follow = Callable[..., tuple[ScriptedServer, RecordingListener, Reflector]]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(reflector, "_sleep_while", lambda seconds, going: waited.append(seconds))
    return waited


@pytest.fixture
def follow(serve: StartServer, waits: list[float]) -> Follow:
    def following(*script: ScriptedAnswer, words: int) -> tuple[ScriptedServer, RecordingListener, Reflector]:
        wire, found = serve(*script), RecordingListener(words)
        made = Reflector(wire.transport, POD, found, labels="a=b")
        made.follow(found.going)
        return wire, found, made

    return following


def test_a_reflector_lists_once_and_then_reports_every_change(follow: Follow, waits: list[float]) -> None:
    script = listing(pod("a", 3), version=5), stream(("ADDED", pod("b", 6)), ("DELETED", pod("a", 7)))
    wire, found, _ = follow(*script, words=3)
    assert found.words == [("LISTED", (["a"], 5)), ("ADDED", ("b", 6)), ("DELETED", ("a", 7))]
    assert "resourceVersion=5" in wire.requests[1].path
    assert waits == []


def test_an_ended_watch_resumes_at_its_last_version(follow: Follow, waits: list[float]) -> None:
    script = listing(version=5), stream(("BOOKMARK", pod("", 40))), stream(("ADDED", pod("b", 41)))
    wire, found, made = follow(*script, words=3)
    assert found.words[1:] == [("HEARD", 40), ("ADDED", ("b", 41))]
    assert "resourceVersion=40" in wire.requests[2].path
    assert (made.lists, waits) == (1, [])


def test_a_410_event_in_a_watch_relists_after_a_random_delay(follow: Follow, waits: list[float]) -> None:
    script = listing(pod("a", 3), version=5), stream(GONE), listing(version=9)
    _, found, made = follow(*script, words=2)
    assert found.words == [("LISTED", (["a"], 5)), ("LISTED", ([], 9))]
    assert made.lists == 2
    assert 0 <= waits[0] <= 5


def test_relists_after_an_expired_version_are_spread_over_time(follow: Follow, waits: list[float]) -> None:
    forgets = listing(version=5), stream(GONE)
    follow(*forgets * 4, listing(version=9), words=5)
    assert len(set(waits)) == 4


def test_watch_timeouts_are_randomized(follow: Follow) -> None:
    peaceful = stream(("BOOKMARK", pod("", 40)))
    wire, _, _ = follow(listing(version=5), *[peaceful] * 6, words=7)
    requests = [re.findall(r"timeoutSeconds=(\d+)", each.path)[0] for each in wire.requests[1:]]
    assert len(set(requests)) > 1
    assert all(290 <= int(seconds) <= 590 for seconds in requests)


def test_a_refused_watch_of_an_old_version_lists_again(follow: Follow) -> None:
    _, found, _ = follow(listing(version=5), error_status(410, "too old"), listing(version=9), words=2)
    assert [word for word, _ in found.words] == ["LISTED", "LISTED"]


def test_a_broken_stream_is_resumed_without_a_list(follow: Follow, waits: list[float]) -> None:
    script = listing(version=5), ScriptedAnswer(hang_up=True), stream(("ADDED", pod("b", 6)))
    wire, _, made = follow(*script, words=2)
    assert (made.lists, len(wire.requests), len(waits)) == (1, 3, 1)


def test_the_backoff_grows_to_an_upper_limit(follow: Follow, waits: list[float]) -> None:
    busy = ("ERROR", {"kind": "Status", "code": 500, "message": "etcd is away"})
    follow(listing(version=5), *[stream(busy)] * 12, stream(("ADDED", pod("b", 6))), words=2)
    assert len(waits) == 12
    assert max(waits) <= 30
    assert max(waits[6:]) > max(waits[:2])
    assert len(set(waits[6:])) > 1, "all agents come back at once"


def test_the_backoff_doubles_per_error_and_resets_after_success(
    follow: Follow, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rng, "uniform", lambda self, least, most: most)
    busy = stream(("ERROR", {"kind": "Status", "code": 500, "message": "etcd is away"}))
    peaceful = stream(("BOOKMARK", pod("", 6)))
    follow(listing(version=5), *[busy] * 6, peaceful, busy, stream(("ADDED", pod("b", 7))), words=3)
    assert waits == [1.6, 3.2, 6.4, 12.8, 25.6, 30, 1.6]


def test_the_backoff_honours_retry_after_seconds(follow: Follow, waits: list[float]) -> None:
    details = {"retryAfterSeconds": 17}
    busy = ("ERROR", {"kind": "Status", "code": 429, "message": "busy", "details": details})
    follow(listing(version=5), stream(busy), stream(("ADDED", pod("b", 6))), words=2)
    assert waits[0] >= 17


def test_a_forbidden_list_does_not_report_objects_as_deleted(follow: Follow, waits: list[float]) -> None:
    _, found, _ = follow(error_status(403, "forbidden"), error_status(403, "forbidden"), listing(version=9), words=1)
    assert found.words == [("LISTED", ([], 9))]
    assert len(waits) == 2


@pytest.mark.parametrize("trouble", [GONE, ("ERROR", {"kind": "Status", "code": 500, "message": "busy"})])
def test_the_reflector_is_open_from_the_accepted_watch_until_an_error(
    trouble: tuple[str, dict[str, Any]], serve: StartServer, waits: list[float]
) -> None:
    wire, found = serve(listing(version=5), stream(("ADDED", pod("b", 6)), trouble)), RecordingListener(9)
    made = Reflector(wire.transport, POD, found)
    was: list[bool] = []

    def going() -> bool:
        was.append(made.is_open)
        return not waits

    made.follow(going)
    assert was == [False, True, False]


def test_a_normally_ended_stream_is_not_open(serve: StartServer) -> None:
    made = Reflector(serve(listing(version=5), stream(("ADDED", pod("b", 6)))).transport, POD, RecordingListener(9))
    made.list_and_watch(lambda: True)
    assert not made.is_open, "no events arrive until the server accepts the next watch"


def test_a_sleep_ends_when_the_reflector_is_stopped() -> None:
    left = iter([True, True, False])
    reflector._sleep_while(60, lambda: next(left))


def test_the_event_buffer_returns_events_in_batches() -> None:
    waiting = EventBuffer({POD: objects.ObservedPod})
    assert waiting.batch(0.01) == []
    waiting.begun(POD)
    waiting.paged(POD, [], 5)
    waiting.listed(POD, 5)
    waiting.changed(POD, "ADDED", objects.Raw(b'{"metadata": {"name": "a"}, "spec": {"dnsPolicy": "x"}}'), 6)
    waiting.heard(POD, 7)
    batch = waiting.batch()
    assert json.loads(bytes(batch[3].items[0])) == {
        "metadata": {"name": "a"},
        "spec": {},  # unread fields are dropped
        "status": {},
    }
    assert [(found.how, found.version) for found in batch] == [
        ("BEGUN", 0),
        ("PAGED", 5),
        ("LISTED", 5),
        ("ADDED", 6),
        ("HEARD", 7),
    ]
    for number in range(600):
        waiting.heard(POD, number)
    assert len(waiting.batch()) == 500


def test_the_batch_delay_is_slept_once_and_skipped_when_full(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, waits = EventBuffer({POD: objects.ObservedPod}), []

    def nap(seconds: float) -> None:
        waits.append(seconds)
        waiting.heard(POD, 2)
        waiting.heard(POD, 3)

    monkeypatch.setattr(event_buffer.clock, "sleep", nap)
    waiting.heard(POD, 1)
    assert [found.version for found in waiting.batch()] == [1, 2, 3]
    assert waits == [event_buffer.BATCH_DELAY_S]
    for number in range(501):
        waiting.heard(POD, number)
    assert len(waiting.batch()) == 500
    assert len(waits) == 1
