"""Checks after a chaos run."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.chaos.client import Answer, Launch
from tests.chaos.history import History


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    holds: bool
    figures: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'BROKEN'} {self.name}: {self.figures}"


@dataclass
class Evidence:
    """The client's record and the database history."""

    launches: Sequence[Launch]
    answers: Sequence[Answer]
    history: History
    lost: int = 0
    doubled: int = 0
    overcharged: int = 0


def acknowledged(seen: Evidence) -> Check:
    """Each request answered with 202 has exactly that lease."""
    promised = [lease for launch in seen.launches for lease in launch.leases]
    there = Counter(str(row[0]) for row in seen.history.rows("SELECT id FROM broker_lease"))
    seen.lost = sum(there[lease] != 1 for lease in promised)
    unheard = sum(not launch.acknowledged for launch in seen.launches)
    return Check(
        "every acknowledged lease exists once",
        not seen.lost and not unheard,
        f"{len(promised)} acknowledged, {seen.lost} lost, {unheard} of {len(seen.launches)} never answered",
    )


def one_per_key(seen: Evidence) -> Check:
    """Each idempotency key has at most one lease."""
    names = Counter(str(row[0]) for row in seen.history.rows("SELECT name FROM broker_lease"))
    twice = sum(len(launch.leases) > 1 for launch in seen.launches)
    seen.doubled = twice + sum(names[launch.body["name"]] > 1 for launch in seen.launches)
    again = sum(len(launch.heard) > 1 for launch in seen.launches)
    late = sum(answer.replayed for launch in seen.launches for answer in launch.heard)
    unclear = sum(
        launch.heard[-1].replayed and not any(a.accepted and not a.replayed for a in launch.heard)
        for launch in seen.launches
    )
    return Check(
        "no key made two leases",
        not seen.doubled and sum(names.values()) == len(seen.launches),
        f"{len(seen.launches)} keys, {again} sent more than once, {late} answers replayed, of which {unclear} told"
        f" of a lease whose first answer was lost; {sum(names.values())} leases, {seen.doubled} doubled",
    )


def lives(seen: Evidence) -> Check:
    """Leases become active and released once, unless released before their start."""
    ended = {
        (str(lease), str(reason)): (int(str(active)), int(str(over)))
        for lease, reason, active, over in seen.history.rows(
            "SELECT l.id, l.end_reason, count(*) FILTER (WHERE t.after = 'active' AND t.before <> 'active'),"
            " count(*) FILTER (WHERE t.after = 'released') FROM broker_lease l"
            " JOIN broker_transition t ON t.lease_id = l.id GROUP BY l.id"
        )
    }
    requests = {lease for launch in seen.launches if launch.released for lease in launch.leases}
    whole = sum(counts == (1, 1) for counts in ended.values())
    early = sum(
        counts == (0, 1) and reason == "by_tenant" and lease in requests for (lease, reason), counts in ended.items()
    )
    reasons = Counter(reason for _, reason in ended)
    text = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return Check(
        "every lease was active once and released once",
        whole + early == len(ended) and set(reasons) <= {"by_tenant", "expired"},
        f"{whole} so, {early} released before they started, {len(ended) - whole - early} otherwise; {text}",
    )


def chain(seen: Evidence) -> Check:
    """Transitions of a lease are consecutive and end in its state."""
    (row,) = seen.history.rows(
        "SELECT count(*), count(*) FILTER (WHERE t.seq > 0 AND (p.lease_id IS NULL OR p.after <> t.before"
        " OR p.at <> t.prev_at)), (SELECT count(*) FROM broker_lease l WHERE l.seq <>"
        " (SELECT max(seq) FROM broker_transition x WHERE x.lease_id = l.id))"
        " FROM broker_transition t"
        " LEFT JOIN broker_transition p ON p.lease_id = t.lease_id AND p.seq = t.seq - 1"
    )
    steps, broken, apart = (int(str(number)) for number in row)
    return Check("the chains are whole", not broken and not apart, f"{steps} steps, {broken} broken, {apart} apart")


def pods(seen: Evidence) -> Check:
    """Each lease has one pod at a time, and each pod has a lease."""
    (row,) = seen.history.rows(
        "SELECT count(*), count(*) FILTER (WHERE died IS NULL),"
        " (SELECT count(*) FROM chaos.pod a JOIN chaos.pod b"
        "     ON split_part(a.name, '-g', 1) = split_part(b.name, '-g', 1) AND a.ctid < b.ctid"
        "    AND tstzrange(a.born, a.died) && tstzrange(b.born, b.died)),"
        " count(*) - count(DISTINCT name) FROM chaos.pod"
    )
    made, left, together, again = (int(str(number)) for number in row)
    return Check(
        "one pod a lease, none left over",
        not left and not together,
        f"{made} made, {again} made again, {together} side by side, {left} left",
    )


def places(seen: Evidence) -> Check:
    """No slot was allocated twice at the same time."""
    (row,) = seen.history.rows(
        "SELECT count(*), count(*) FILTER (WHERE released_at IS NULL),"
        " (SELECT count(*) FROM broker_allocation a JOIN broker_allocation b ON a.gpu_id = b.gpu_id AND a.id < b.id"
        "    AND a.placement && b.placement"
        "    AND tstzrange(a.held_at, a.released_at) && tstzrange(b.held_at, b.released_at))"
        " FROM broker_allocation"
    )
    held, kept, overlapping = (int(str(number)) for number in row)
    return Check(
        "no place was held twice",
        not kept and not overlapping,
        f"{held} places held, {overlapping} overlaps, {kept} not given back",
    )


CHARGED = """
WITH life AS (
  SELECT l.id, l.quantity, l.max_duration_s, begun.at AS s, ended.at AS e
    FROM broker_lease l
    JOIN broker_transition begun ON begun.lease_id = l.id AND begun.after = 'active'
    JOIN broker_transition ended ON ended.lease_id = l.id AND ended.prev_seq = begun.seq
), charged AS (
  SELECT lease_id, sum(unit_seconds) AS unit_seconds, min(s) AS s, max(e) AS e FROM billing_ratedcharge GROUP BY 1
), pod AS (
  SELECT 'lse_' || split_part(substr(name, 3), '-g', 1) AS id, min(ready_at) AS ready, max(died) AS died
    FROM chaos.pod GROUP BY 1
)
SELECT id, extract(epoch FROM life.e - life.s)::bigint * quantity, coalesce(charged.unit_seconds, 0)::bigint,
       coalesce(charged.s < life.s OR charged.e > life.e, false),
       coalesce(life.s < date_trunc('second', pod.ready) OR life.e > pod.died, true),
       extract(epoch FROM life.e), extract(epoch FROM life.e - life.s) > max_duration_s
  FROM life FULL JOIN charged ON charged.lease_id = life.id LEFT JOIN pod USING (id)
"""


def charges(seen: Evidence) -> Check:
    """Charges equal active seconds by transitions, pods and client."""
    values = {lease: launch.released.at for launch in seen.launches if launch.released for lease in launch.leases}
    active = charged = without = 0
    for lease, used, paid, outside, unready, end, beyond in seen.history.rows(CHARGED):
        active, charged = active + int(str(used or 0)), charged + int(str(paid))
        after_release = lease in values and float(str(end)) > values[str(lease)]
        without += bool(used is None or used != paid or outside or unready or beyond or after_release)
    seen.overcharged = without
    return Check(
        "charged is what was active",
        not without and active == charged,
        f"{active} unit-seconds active, {charged} charged, {without} leases charged for time they were not"
        " active, had no ready pod, or were told had ended",
    )


def quotas(seen: Evidence) -> Check:
    """All units are returned, and exactly the used GPU-hours are consumed."""
    (row,) = seen.history.rows(
        "SELECT sum(used) FILTER (WHERE kind = 'units'), max(used) FILTER (WHERE kind = 'gpu_seconds'),"
        " min(used) FILTER (WHERE kind = 'gpu_seconds'),"
        " (SELECT sum(c.unit_seconds * o.milli_units) FROM billing_ratedcharge c"
        "   JOIN broker_offering o ON o.id = c.offering_id) FROM tenants_quota"
    )
    units, most, least, used = (int(str(number or 0)) for number in row)
    return Check(
        "quotas are given back",
        units == 0 and most == least == used,
        f"{units} milli-units held, {most // 1000} unit-seconds counted, {used // 1000} used",
    )


def outbox(seen: Evidence) -> Check:
    """No message waits, except alarms for leases that ended early."""
    due = seen.history.number(
        "SELECT count(*) FROM ports_outboxmessage WHERE at < clock_timestamp() - interval '2 seconds'"
    )
    alarms = seen.history.number("SELECT count(*) FROM ports_outboxmessage WHERE at > clock_timestamp()")
    return Check("the outbox is empty", not due, f"{due} hints due, {alarms} alarms for later")


def answered(seen: Evidence) -> Check:
    """During outages the API answered 503 or nothing."""
    counts = Counter(
        a.body["why"].partition("(")[0] if a.status == 0 else f"{a.status} {a.body.get('code', '')}".strip()
        for a in seen.answers
    )
    refused = {"ConnectionRefusedError", "ConnectionResetError", "RemoteDisconnected", "BrokenPipeError"}
    known = refused | {"200", "202", "503 busy", "409 idempotency-in-flight", "409 already-over"}
    return Check(
        "every answer was clear",
        set(counts) <= known,
        ", ".join(f"{count} × {name}" for name, count in counts.most_common()),
    )


CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    acknowledged,
    one_per_key,
    lives,
    chain,
    pods,
    places,
    charges,
    quotas,
    outbox,
    answered,
)
