"""Read the new output of a lease's containers from its cluster.

The API takes the beginning in whole seconds, so lines that were read before come again and are left out:
each has a time of nanoseconds. A container that was restarted has its previous output read first.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from broker.domain.logs.log_lines import SKIPPED_TEXT, LineSource, LogLine
from broker.provisioners.base import ClusterUnreachable, LogRead
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import api_errors, objects
from broker.provisioners.kubernetes.client.kinds import EVENT, POD, ObjectRef
from broker.provisioners.kubernetes.client.objects import ContainerStatus, ObservedPod, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.observe.pod_events import describe_event

CONTAINER = "main"
READ_BYTES = 256 * 1024
NEWEST_LINES = 1000
MAX_PODS = 16
MAX_EVENTS = 200
EVENTS_INTERVAL_S = 3600  # between two reads of the events of a lease that runs well
NANOSECONDS = 10**9
RFC3339 = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:\d\d)", re.ASCII
)
NO_RIGHT = "The cluster does not let the broker read logs. Its operator must run `manage.py kube_setup` for it again."


@dataclass(frozen=True, slots=True)
class TimedLine:
    """One line as the cluster sent it, with its time in nanoseconds since 1970."""

    ns: int
    text: str
    is_after_gap: bool = False  # lines before it could not be read


@dataclass(frozen=True, slots=True)
class ContainerPosition:
    """How far the output of one pod's container was read."""

    ns: int = -1  # time of the last line that was read
    same: int = 0  # how many lines of exactly that time were read
    restarts: int = 0  # of the container whose output that was
    skips: bool = False  # what comes next is not what came after it

    @classmethod
    def from_json(cls, stored: Sequence[int]) -> "ContainerPosition":
        return cls(stored[0], stored[1], stored[2], bool(stored[3:] and stored[3]))

    def as_json(self) -> list[int]:
        return [self.ns, self.same, self.restarts, int(self.skips)]


def read_pods_log(
    api: KubernetesApi, pods: Iterable[ObservedPod], cursor: dict[str, Any], *, newest_only: bool, now: datetime
) -> LogRead:
    """Return the new output and events of a lease's pods, in order of time."""
    shown = sorted(pods, key=_rank)[:MAX_PODS]
    positions: dict[str, list[int]] = dict(cursor.get("pods", {}))
    lines: list[LogLine] = []
    more, fault = False, ""
    for pod in shown:
        stored = positions.get(pod.metadata.uid)
        position = ContainerPosition.from_json(stored) if stored else ContainerPosition()
        status = next((each for each in pod.status.container_statuses if each.name in (CONTAINER, "")), None)
        if status is None or not _has_output(status):
            continue
        prefix = f"rank {_rank(pod)}: " if len(shown) > 1 else ""
        try:
            found, position, cut = _read_container(api, pod, status, position, newest_only=newest_only)
        except api_errors.AccessDenied:
            fault = NO_RIGHT
            break
        except ClusterUnreachable as error:  # its node, perhaps; the others may well answer
            fault = f"The cluster does not respond: {error}"
            continue
        except (api_errors.ObjectMissing, api_errors.ObjectInvalid):
            continue  # the container is not there yet, or no longer
        positions[pod.metadata.uid] = position.as_json()
        if found and found[0].is_after_gap:
            lines.append(LogLine(_moment(found[0].ns), SKIPPED_TEXT, LineSource.PLATFORM))
        lines += [LogLine(_moment(each.ns), prefix + each.text) for each in found]
        more = more or cut
    events: list[LogLine] = []
    seen, read_at = dict(cursor.get("events", {})), int(cursor.get("events_at", 0))
    if _events_are_due(shown, read_at, now):
        events, seen = read_new_events(api, shown, seen)
        read_at = int(now.timestamp())
    present = {pod.metadata.uid for pod in shown}
    positions = {uid: stored for uid, stored in positions.items() if uid in present}
    lines = sorted([*lines, *events], key=lambda line: line.at)
    after = {"pods": positions, "events": seen, "events_at": read_at}
    return LogRead(tuple(lines), after, more=more, fault=fault)


def _events_are_due(pods: Sequence[ObservedPod], read_at: int, now: datetime) -> bool:
    """Return whether to read the events of a lease's pods again."""
    if now.timestamp() - read_at >= EVENTS_INTERVAL_S:
        return True
    return any(_has_new_events(pod, read_at) for pod in pods)


def _has_new_events(pod: ObservedPod, read_at: int) -> bool:
    """Return whether a pod may have events that were not read yet."""
    ready = pod.condition("Ready")
    since = ready.last_transition_time if ready else None
    if ready is None or not ready.holds or since is None or pod.metadata.deletion_timestamp:
        return True
    return read_at <= since.timestamp()


def _read_container(
    api: KubernetesApi, pod: ObservedPod, status: ContainerStatus, position: ContainerPosition, *, newest_only: bool
) -> tuple[list[TimedLine], ContainerPosition, bool]:
    """Return a container's new lines, the new position, and whether there were more."""
    found: list[TimedLine] = []
    if status.restart_count > position.restarts:
        earlier, position, cut = _read_once(api, pod, position, previous=True, newest_only=newest_only)
        found += earlier
        if cut:  # the rest of it first
            return found, position, True
        position = replace(position, restarts=status.restart_count)
    state = status.state
    if state.running is None and state.terminated is None and status.last_state.terminated is None:
        return found, position, False  # it has not started yet
    later, position, cut = _read_once(api, pod, position, previous=False, newest_only=newest_only)
    return found + later, position, cut


def _read_once(
    api: KubernetesApi, pod: ObservedPod, position: ContainerPosition, *, previous: bool, newest_only: bool
) -> tuple[list[TimedLine], ContainerPosition, bool]:
    query = {"container": CONTAINER, "timestamps": "true", "limitBytes": str(READ_BYTES)}
    if previous:
        query["previous"] = "true"
    if newest_only:
        query["tailLines"] = str(NEWEST_LINES)
    if position.ns >= 0:
        query["sinceTime"] = f"{_moment(position.ns):%Y-%m-%dT%H:%M:%SZ}"
    path = f"{ObjectRef(POD, pod.metadata.name, pod.metadata.namespace).path}/log"
    try:
        body = api.read_text(path, query)
    except (api_errors.ObjectMissing, api_errors.ObjectInvalid):
        if previous:
            return [], position, False  # its node keeps the output of one earlier run, and not for ever
        raise
    cut = len(body) >= READ_BYTES
    received = parse_lines(body, cut=cut)
    fresh = _unread(received, position)
    if cut and not fresh and received:  # a second with more output than one read holds: go on after it
        beyond = max((received[-1].ns // NANOSECONDS + 1) * NANOSECONDS, position.ns)
        return [], ContainerPosition(beyond, 0, position.restarts, skips=True), True
    if fresh and (position.skips or (newest_only and received[0] is fresh[0] and position.ns >= 0)):
        fresh[0] = TimedLine(fresh[0].ns, fresh[0].text, is_after_gap=True)
    return fresh, _position_after(fresh, position), cut


def parse_lines(body: bytes, *, cut: bool) -> list[TimedLine]:
    """Parse lines of the form `2026-01-02T03:04:05.123456789Z text`.

    A line without a time continues the one before it. The last line of a response that was cut at its
    limit is left out, unless it is the only one: it comes again with the next read.
    """
    rows = body.decode("utf-8", "replace").split("\n")
    if cut and len(rows) > 1:
        rows.pop()
    found: list[TimedLine] = []
    for row in rows:
        moment, _, text = row.partition(" ")
        ns = parse_nanoseconds(moment)
        if ns is not None:
            found.append(TimedLine(ns, text))
        elif row and found:
            found.append(TimedLine(found[-1].ns, row))
    return found


def parse_nanoseconds(text: str) -> int | None:
    """Return the nanoseconds since 1970 of an RFC 3339 time; None for any other text."""
    found = RFC3339.fullmatch(text)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found["seconds"] + found["zone"])
    except ValueError:  # no such day
        return None
    return int(moment.timestamp()) * NANOSECONDS + int((found["fraction"] or "").ljust(9, "0"))


def _unread(received: Sequence[TimedLine], position: ContainerPosition) -> list[TimedLine]:
    """Return the lines after a position; of its own moment, those beyond the ones read."""
    left, fresh = position.same, []
    for line in received:
        if line.ns < position.ns:
            continue
        if line.ns == position.ns and left > 0:
            left -= 1
            continue
        fresh.append(line)
    return fresh


def _position_after(fresh: Sequence[TimedLine], position: ContainerPosition) -> ContainerPosition:
    if not fresh:
        return position
    ns = max(line.ns for line in fresh)
    same = sum(line.ns == ns for line in fresh) + (position.same if ns == position.ns else 0)
    return ContainerPosition(ns, same, position.restarts)


def read_new_events(
    api: KubernetesApi, pods: Sequence[ObservedPod], seen: dict[str, int]
) -> tuple[list[LogLine], dict[str, int]]:
    """Return the pods' events that are not in `seen`, which counts each by uid."""
    if not pods:
        return [], seen
    uids = {pod.metadata.uid for pod in pods}
    namespace = pods[0].metadata.namespace
    fields = f"involvedObject.kind=Pod,involvedObject.name={pods[0].metadata.name}" if len(pods) == 1 else ""
    try:
        bodies, _ = api.list_all(EVENT, namespace=namespace, fields=fields or "involvedObject.kind=Pod")
    except api_errors.AccessDenied:
        return [], seen
    lines, counts = [], {}
    events = [event for event in (decode(each, objects.ClusterEvent) for each in bodies) if _is_about(event, uids)]
    for event in events[-MAX_EVENTS:]:
        count = event.count or 1
        counts[event.metadata.uid] = count
        if count > seen.get(event.metadata.uid, 0) and event.at:
            lines.append(LogLine(event.at, describe_event(event), LineSource.PLATFORM))
    return lines, counts


def _is_about(event: objects.ClusterEvent, uids: set[str]) -> bool:
    return event.involved_object.uid in uids


def _has_output(status: ContainerStatus) -> bool:
    return bool(status.state.running or status.state.terminated or status.restart_count)


def _rank(pod: ObservedPod) -> int:
    text = pod.metadata.labels.get(labels.RANK, "0")
    return int(text) if text.isdecimal() else 0


def _moment(ns: int) -> datetime:
    seconds, rest = divmod(ns, NANOSECONDS)
    return datetime.fromtimestamp(seconds, tz=UTC) + timedelta(microseconds=rest // 1000)
