"""Output of containers, read piece by piece from a played kubelet."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from broker.domain.logs.log_lines import SKIPPED_TEXT, LineSource
from broker.provisioners.base import ClusterUnreachable, LogRead
from broker.provisioners.kubernetes.client import api_errors
from broker.provisioners.kubernetes.client.objects import ClusterEvent, ObservedPod
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.observe import container_logs
from broker.provisioners.kubernetes.observe.container_logs import (
    NO_RIGHT,
    parse_lines,
    parse_nanoseconds,
    read_pods_log,
)
from broker.provisioners.kubernetes.observe.pod_events import describe_event

START = datetime(2026, 7, 1, 12, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9


def written(offset_ns: int, text: str) -> tuple[int, str]:
    return START_NS + offset_ns, text


def stamped(ns: int, text: str) -> str:
    seconds, rest = divmod(ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z {text}\n"


@dataclass
class PlayedKubelet:
    """Answers reads of logs as a kubelet does: sinceTime in whole seconds, tailLines, limitBytes."""

    output: list[tuple[int, str]] = field(default_factory=list)
    previous: list[tuple[int, str]] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    refusal: Exception | None = None
    queries: list[dict[str, str]] = field(default_factory=list)
    event_reads: int = 0
    now: datetime = START

    def read_text(self, path: str, query: dict[str, str]) -> bytes:
        self.queries.append(dict(query))
        if self.refusal:
            raise self.refusal
        if query.get("previous") and self.previous is None:
            raise api_errors.ObjectInvalid('previous terminated container "main" in pod "p0" not found')
        lines = self.previous if query.get("previous") else self.output
        assert lines is not None
        if since := query.get("sinceTime"):
            from_ns = int(datetime.fromisoformat(since).timestamp()) * 10**9
            lines = [each for each in lines if each[0] >= from_ns]
        if tail := query.get("tailLines"):
            lines = lines[-int(tail) :]
        return "".join(stamped(*each) for each in lines).encode()[: int(query["limitBytes"])]

    def list_all(self, *_: Any, **__: Any) -> tuple[list[msgspec.Raw], str]:
        self.event_reads += 1
        return [msgspec.Raw(msgspec.json.encode(each)) for each in self.events], "1"

    def read(self, cursor: dict[str, Any], *pods: ObservedPod, newest_only: bool = False) -> LogRead:
        self.now += timedelta(seconds=1)
        api = cast(KubernetesApi, self)
        return read_pods_log(api, pods or (pod(),), cursor, newest_only=newest_only, now=self.now)


def pod(
    *,
    restarts: int = 0,
    rank: int = 0,
    conditions: list[dict[str, Any]] | None = None,
    last: dict[str, Any] | None = None,
    **state: Any,
) -> ObservedPod:
    body = {
        "metadata": {
            "name": f"p{rank}",
            "namespace": "gpub-a",
            "uid": f"uid-{rank}",
            "labels": {"gpubroker.dev/rank": str(rank)},
        },
        "status": {
            "conditions": conditions or [],
            "containerStatuses": [
                {
                    "name": "main",
                    "restartCount": restarts,
                    "state": state or {"running": {"startedAt": START}},
                    "lastState": last or {},
                }
            ],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=ObservedPod)


def texts(read: LogRead) -> list[str]:
    return [line.text for line in read.lines]


def read_everything(kubelet: PlayedKubelet, cursor: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    found: list[str] = []
    for _ in range(500):
        read = kubelet.read(cursor)
        found += texts(read)
        cursor = read.cursor
        if not read.more:
            return found, cursor
    raise AssertionError("reading never ends")


def test_lines_have_their_own_time_to_the_microsecond() -> None:
    (line,) = PlayedKubelet([written(123_456_789, "hi")]).read({}).lines
    assert (line.at, line.text, line.source) == (
        START + timedelta(microseconds=123_456),
        "hi",
        LineSource.PROGRAM,
    )


def test_a_second_read_returns_only_what_is_new_although_seconds_overlap() -> None:
    kubelet = PlayedKubelet([written(1, "a"), written(2, "b")])
    first = kubelet.read({})
    kubelet.output += [written(3, "c"), written(10**9, "d")]
    second = kubelet.read(first.cursor)
    assert (texts(first), texts(second)) == (["a", "b"], ["c", "d"])
    assert kubelet.queries[-1]["sinceTime"] == "2026-07-01T12:00:00Z"
    assert texts(kubelet.read(second.cursor)) == []


def test_several_lines_of_one_nanosecond_are_each_read_once() -> None:
    kubelet = PlayedKubelet([written(5, "a"), written(5, "a")])
    first = kubelet.read({})
    kubelet.output += [written(5, "a"), written(5, "b")]
    second = kubelet.read(first.cursor)
    kubelet.output += [written(5, "c")]
    assert [texts(first), texts(second), texts(kubelet.read(second.cursor))] == [["a", "a"], ["a", "b"], ["c"]]


@pytest.mark.parametrize("limit", [97, 128, 1000, 4096])
def test_output_larger_than_one_read_arrives_complete_and_in_order(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(container_logs, "READ_BYTES", limit)
    lines = [written(number * 10**9, f"line {number} {'x' * (number % 7)}") for number in range(60)]
    found, _ = read_everything(PlayedKubelet(lines), {})
    assert found == [text for _, text in lines]


def test_a_second_with_more_than_one_read_is_left_behind_and_reading_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_logs, "READ_BYTES", 500)
    flood = [written(number, f"flood {number}") for number in range(1000)]
    found, _ = read_everything(PlayedKubelet([*flood, written(10**9, "after")]), {})
    assert found[0] == "flood 0"
    assert found[-2:] == [SKIPPED_TEXT, "after"]
    assert len(found) == len(set(found))


def test_a_read_of_the_newest_lines_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_logs, "READ_BYTES", 400)
    monkeypatch.setattr(container_logs, "NEWEST_LINES", 20)
    lines = [written(number * 10**9, f"line {number} {'x' * 40}") for number in range(200)]
    kubelet, cursor, found = PlayedKubelet(lines), dict[str, Any](), list[str]()
    for attempt in range(300):  # as the collector does: every fourth read asks for the newest lines
        read = kubelet.read(cursor, newest_only=attempt % 4 == 3)
        found += [text for text in texts(read) if text != SKIPPED_TEXT]
        cursor = read.cursor
    assert len(found) == len(set(found))
    assert found == sorted(found, key=lambda text: int(text.split()[1]))
    assert found[-1] == lines[-1][1]


def test_lines_that_were_left_out_are_told_once() -> None:
    kubelet = PlayedKubelet([written(number * 10**9, str(number)) for number in range(3)])
    first = kubelet.read({})
    kubelet.output += [written(number * 10**9, str(number)) for number in range(3, 2000)]
    second = kubelet.read(first.cursor, newest_only=True)
    assert texts(second)[:2] == [SKIPPED_TEXT, "1000"]
    assert texts(kubelet.read(second.cursor, newest_only=True)) == []


def test_only_the_newest_lines_are_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_logs, "NEWEST_LINES", 3)
    kubelet = PlayedKubelet([written(number, str(number)) for number in range(10)])
    assert texts(kubelet.read({}, newest_only=True)) == ["7", "8", "9"]


def test_the_output_before_a_restart_is_read_first() -> None:
    kubelet = PlayedKubelet([written(1, "first try")])
    first = kubelet.read({})
    kubelet.previous = [*kubelet.output, written(2, "Traceback"), written(3, "crashed")]
    kubelet.output = [written(10**9, "second try")]
    second = kubelet.read(first.cursor, pod(restarts=1))
    assert texts(second) == ["Traceback", "crashed", "second try"]
    assert texts(kubelet.read(second.cursor, pod(restarts=1))) == []


def test_a_container_waiting_for_its_restart_shows_how_it_ended() -> None:
    kubelet = PlayedKubelet([], previous=[written(1, "crashed")])
    waiting = pod(restarts=1, waiting={"reason": "CrashLoopBackOff"})
    assert texts(kubelet.read({}, waiting)) == ["crashed"]


def test_the_last_words_before_a_restart_are_read_while_it_waits() -> None:
    kubelet = PlayedKubelet([written(1, "step 1")])
    first = kubelet.read({}, pod(restarts=1))
    kubelet.output.append(written(2, "ValueError: bad"))
    ended = {"terminated": {"exitCode": 1, "finishedAt": START}}
    waits = pod(restarts=1, last=ended, waiting={"reason": "CrashLoopBackOff"})
    assert texts(kubelet.read(first.cursor, waits)) == ["ValueError: bad"]


def test_an_earlier_run_that_its_node_no_longer_has_is_left_out() -> None:
    kubelet = PlayedKubelet([written(1, "second try")], previous=None)
    assert texts(kubelet.read({}, pod(restarts=3))) == ["second try"]


def test_a_container_that_has_not_started_is_not_asked_for_output() -> None:
    kubelet = PlayedKubelet()
    assert kubelet.read({}, pod(waiting={"reason": "ContainerCreating"})).lines == ()
    assert kubelet.queries == []


@pytest.mark.parametrize("refusal", [api_errors.ObjectMissing("gone"), api_errors.ObjectInvalid("is waiting to start")])
def test_a_pod_that_vanished_meanwhile_is_no_fault(refusal: Exception) -> None:
    assert PlayedKubelet(refusal=refusal).read({}).fault == ""


def test_a_missing_right_is_reported_with_its_cure() -> None:
    assert PlayedKubelet(refusal=api_errors.AccessDenied("forbidden")).read({}).fault == NO_RIGHT


def test_a_node_that_does_not_answer_hides_no_other_rank() -> None:
    kubelet = PlayedKubelet([written(1, "ready")])
    read_text = kubelet.read_text

    def read_one(path: str, query: dict[str, str]) -> bytes:
        if "p0" in path:
            raise ClusterUnreachable("no route to host")
        return read_text(path, query)

    kubelet.read_text = read_one  # type: ignore[method-assign]
    read = kubelet.read({}, pod(rank=0), pod(rank=1))
    assert (texts(read), read.fault) == (["rank 1: ready"], "The cluster does not respond: no route to host")


def test_lines_of_a_gang_say_their_rank_in_order_of_time() -> None:
    read = PlayedKubelet([written(1, "ready")]).read({}, pod(rank=1), pod(rank=0))
    assert texts(read) == ["rank 0: ready", "rank 1: ready"]
    assert set(read.cursor["pods"]) == {"uid-0", "uid-1"}


def test_positions_of_pods_that_are_gone_are_forgotten() -> None:
    kubelet = PlayedKubelet([written(1, "a")])
    cursor = kubelet.read({}, pod(rank=0), pod(rank=1)).cursor
    assert set(kubelet.read(cursor, pod(rank=1)).cursor["pods"]) == {"uid-1"}


def event(reason: str, message: str = "", *, uid: str = "e1", count: int = 1, about: str = "uid-0") -> dict[str, Any]:
    return {
        "metadata": {"name": uid, "uid": uid},
        "involvedObject": {"name": "p0", "uid": about},
        "reason": reason,
        "message": message,
        "count": count,
        "lastTimestamp": START,
    }


def test_events_become_lines_of_the_platform_once() -> None:
    kubelet = PlayedKubelet(events=[event("Scheduled"), event("Started", uid="e2", about="uid-of-another")])
    first = kubelet.read({})
    assert [(line.text, line.source) for line in first.lines] == [("A node was assigned.", LineSource.PLATFORM)]
    assert kubelet.read(first.cursor).lines == ()


def test_events_are_read_until_a_pod_is_ready_and_when_it_changes() -> None:
    kubelet = PlayedKubelet()

    def reads_in_a_minute(**status: Any) -> int:
        nonlocal cursor
        before = kubelet.event_reads
        for _ in range(60):
            cursor = kubelet.read(cursor, pod(**status)).cursor
        return kubelet.event_reads - before

    def condition(status: str) -> list[dict[str, str]]:
        return [{"type": "Ready", "status": status, "lastTransitionTime": f"{kubelet.now:%Y-%m-%dT%H:%M:%SZ}"}]

    cursor: dict[str, Any] = {}
    assert reads_in_a_minute() == 60
    assert reads_in_a_minute(conditions=(ready := condition("True"))) == 1
    assert reads_in_a_minute(conditions=ready) == 0
    assert reads_in_a_minute(conditions=condition("False")) == 60
    assert reads_in_a_minute(conditions=(ready := condition("True"))) == 1
    kubelet.now += timedelta(hours=1)
    assert reads_in_a_minute(conditions=ready) == 1


def test_an_event_that_happens_again_is_a_line_again() -> None:
    kubelet = PlayedKubelet(events=[event("BackOff", "Back-off restarting failed container main in pod p0")])
    first = kubelet.read({})
    kubelet.events = [event("BackOff", "Back-off restarting failed container main in pod p0", count=2)]
    assert len(kubelet.read(first.cursor).lines) == 1


# Messages as kubelets 1.29–1.34 and the default scheduler write them.
@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        (
            "Pulling",
            'Pulling image "pytorch/pytorch:2.9-cuda13"',
            "Pulling the image pytorch/pytorch:2.9-cuda13.",
        ),
        (
            "Pulled",
            'Successfully pulled image "a/b:1" in 12.4s (12.4s including waiting). Image size: 3071 bytes.',
            "Pulled the image a/b:1 in 12.4s.",
        ),
        (
            "Pulled",
            'Container image "a/b:1" already present on machine',
            "The image a/b:1 is already on the node.",
        ),
        ("Started", "Started container main", "The container started."),
        ("Killing", "Stopping container main", "The container is being stopped."),
        (
            "Killing",
            "Container main failed liveness probe, will be restarted",
            "The container is restarted: it failed its health check.",
        ),
        (
            "BackOff",
            'Back-off pulling image "a/b:1"',
            "The image a/b:1 cannot be pulled; it is tried again later.",
        ),
        (
            "BackOff",
            "Back-off restarting failed container main in pod p0_gpub(uid)",
            "The program ended again and again; it is restarted after a pause.",
        ),
        (
            "Failed",
            'Failed to pull image "a/b:1": not found',
            'The image cannot be pulled: Failed to pull image "a/b:1": not found.',
        ),
        (
            "Failed",
            'Error: failed to create containerd task: exec: "nope": executable file not found in $PATH',
            'The container cannot be started: failed to create containerd task: exec: "nope": executable file not'
            " found in $PATH.",
        ),
        (
            "FailedScheduling",
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity.",
            "No node accepts it yet: not enough nvidia.com/gpu is free.",
        ),
        (
            "FailedScheduling",
            "0/9 nodes are available: 1 node(s) had untolerated taint {team: kestrel}, 8 node(s) didn't match Pod's"
            " node affinity/selector. preemption: 0/9 nodes are available: 9 Preemption is not helpful.",
            "No node accepts it yet: its node has a taint.",
        ),
        (
            "Preempted",
            "Preempted by pod l-other-g2-0 on node gpu-node-17",
            "It was removed for a pod of higher priority.",
        ),
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "pvc-1": mount.nfs: Connection timed out 10.1.2.3:/export/kestrel',
            "A volume cannot be mounted yet.",
        ),
        (
            "FailedPrepareDynamicResources",
            "Failed to prepare dynamic resources: NodePrepareResources failed for claim gpub-x/l-1: device gpu-3 busy",
            "Its node cannot prepare its GPU yet.",
        ),
        (
            "TopologyAffinityError",
            "Resources cannot be allocated with Topology locality",
            "Its node has no GPUs and CPUs of one NUMA node left for it.",
        ),
        (
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 3 node(s) didn't match Pod's node affinity/selector",
            "The cluster adds no node for it.",
        ),
        ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 8, used: 90", "Its node rejected it."),
        (
            "Failed",
            'Error: dial tcp 10.0.12.34:443: lookup nfs-1.storage.svc.cluster.local: nfs-1:/export/a, image "a/b:1"',
            'The container cannot be started: dial tcp …: lookup … …, image "a/b:1".',
        ),
        (
            "Unhealthy",
            'Readiness probe failed: Get "https://[fd00::1:2]:8080/": refused',
            'A health check failed: Readiness probe failed: Get "https://…/": refused.',
        ),
        ("OddReason", "node gpu-17 said\n  this", "OddReason."),
        ("NodeNotReady", "Node is not ready", "Its node is not ready."),
    ],
)
def test_events_in_plain_words(reason: str, message: str, text: str) -> None:
    found = msgspec.convert(event(reason, message), ClusterEvent)
    assert describe_event(found) == text


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-07-01T12:00:00.000000001Z", START_NS + 1),
        ("2026-07-01T12:00:00Z", START_NS),
        ("2026-07-01T12:00:00.5Z", START_NS + 500_000_000),
        ("2026-07-01T14:00:00+02:00", START_NS),
        ("2026-07-01T12:00:00", None),
        ("2026-07-01T12:00:00.1234567890Z", None),
        ("2026-02-30T12:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_of_lines(text: str, ns: int | None) -> None:
    assert parse_nanoseconds(text) == ns


def test_a_row_without_a_time_continues_the_line_before() -> None:
    body = f"no time yet\n{stamped(START_NS, 'a')}b\n".encode()
    assert [(line.ns, line.text) for line in parse_lines(body, cut=False)] == [(START_NS, "a"), (START_NS, "b")]


NOT_UTF8 = [b"\xff\xfe", b"\xc3("]


@pytest.mark.parametrize("raw", NOT_UTF8)
def test_output_that_is_no_utf8_is_kept_with_replacements(raw: bytes) -> None:
    body = stamped(START_NS, "").rstrip("\n").encode() + raw + b"\n"
    (line,) = parse_lines(body, cut=False)
    assert "\N{REPLACEMENT CHARACTER}" in line.text
