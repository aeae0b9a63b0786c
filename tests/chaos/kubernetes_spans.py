"""Compare the seconds pods held slices with the seconds charged.

A pod holds its slice from the first start of its program until it is over or gone, by the cluster's word; whether that
program is ready, or waits to be started again, is its own business. A lease is charged from active to its end. What
was held beside that is free for one of these reasons, and lost otherwise:

- it was starting: charging begins when readiness is known, which takes a worker that died and a cluster that wants to
  be asked later some time, at most `STARTS_WITHIN_S`;
- it was going: its end was in our books already, and slow ends are not charged, at most `GOES_WITHIN_S`;
- nobody could hear of it: what is silent is charged to its last proof of life, which is a pulse old at most. Whoever
  lets go while our books call the cluster or the lease silent pays until they did so, for no more than
  `BELIEVED_S` where nothing is known to be silent: one answer that failed is asked for again by then.

And a lease outlives a pod where another is made within `REPLACED_WITHIN_S`; that moment is charged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from broker.provisioners.kubernetes.agent.agent_heartbeat import EVERY_S, PATIENCE_S
from broker.services.reconciler.lease_reconciler import CLAIM_TIME
from broker.services.reconciler.observation_kinds import LOST_AFTER
from broker.services.reconciler.observation_outcomes import RECHECK_AFTER

Life = tuple[str, int]  # a lease and its generation: between two of them it was stopped, or went elsewhere
EVERYWHERE, EVER = "", float("inf")
BY_THE_BOOKS, OUR_WORD = "clu_", ("clu_", "lse_")  # silences of the cluster, or of one lease, by our own word
SWEEP_S, RETRY_AFTER_S = 5.0, 30.0  # how long each lets wait at most
LOOK_S = RECHECK_AFTER.total_seconds() + SWEEP_S
STARTS_WITHIN_S = GOES_WITHIN_S = CLAIM_TIME.total_seconds() + LOOK_S + RETRY_AFTER_S
REPLACED_WITHIN_S = LOST_AFTER.total_seconds() + LOOK_S
PROOF_S = EVERY_S + PATIENCE_S  # so old the last proof of life may be when a silence begins
BELIEVED_S = PROOF_S + LOOK_S + RETRY_AFTER_S
HEARD_AGAIN_S = LOOK_S  # until who could not be heard was asked again
UNEXPLAINED = ("lost", "charged_between_pods")
FREE = ("starting", "going", "silent", "between_pods")
# The ledger and a pod's status know whole seconds, and an end is written a moment after the clock was read.
TOLD_WITHIN_S = 1.0 + 0.5


class Piece(NamedTuple):
    """A span of real time, in seconds."""

    since: float
    until: float


@dataclass(frozen=True)
class Held:
    """When one pod held a slice, and on which node."""

    life: Life
    node: str
    when: Piece


@dataclass(frozen=True)
class Silence:
    """A span in which a node, or the whole cluster, was unreachable."""

    node: str
    when: Piece


@dataclass(frozen=True)
class Book:
    """The recorded span of one lease generation."""

    charged: Piece
    written: float  # when its end was written down, which may name an earlier moment
    cause: str = ""


def account(
    held: Iterable[Held],
    books: dict[Life, Book],
    silences: Sequence[Silence],
    *,
    now: float,
    stories: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, int]:
    """Sum up unpaid seconds by reason, and seconds charged without a pod.

    What cannot be explained is printed with the story of its lease.
    """
    sums = Counter[str](dict.fromkeys([*UNEXPLAINED, *FREE, *(f"longest_{why}" for why in FREE)], 0))
    lives: dict[Life, list[Held]] = {}
    for each in held:
        lives.setdefault(each.life, []).append(each)
    for life, pods in lives.items():
        book = books.get(life, Book(Piece(now, now), now))
        mute = _mute(pods, silences)
        for why, seconds in _of_life(pods, book, mute):
            sums[why] += round(seconds)
            if why in FREE:
                sums[f"longest_{why}"] = max(sums[f"longest_{why}"], round(seconds))
            if why in UNEXPLAINED and round(seconds):
                print(f"{life}: {seconds:.1f} s {why}; {book}, {pods}", *mute, sep="\n", flush=True)
                print(*stories.get(life[0], ()), sep="\n", flush=True)
    return dict(sums)


def _of_life(pods: Sequence[Held], book: Book, mute: Sequence[Piece]) -> Iterable[tuple[str, float]]:
    there = merged(each.when for each in pods)
    charged, written = book.charged, max(book.written, book.charged.until)
    yield from _free("starting", cut(there, Piece(0.0, charged.since)), mute, within=STARTS_WITHIN_S)
    yield from _free("silent", cut(there, Piece(charged.until, written)), mute, within=TOLD_WITHIN_S)
    yield from _free("going", cut(there, Piece(written, EVER)), mute, within=GOES_WITHIN_S)
    for gap in minus(cut([charged], Piece(there[0].since, there[-1].until)), there):
        is_long = length(minus([gap], mute)) > REPLACED_WITHIN_S
        yield ("charged_between_pods" if is_long else "between_pods"), length([gap])


def _free(why: str, pieces: Sequence[Piece], mute: Sequence[Piece], *, within: float) -> Iterable[tuple[str, float]]:
    """Yield unpaid spans, and those longer than their reason allows."""
    whole, heard = length(pieces), length(minus(pieces, mute))
    lost = heard if why == "silent" and heard > within else max(0.0, heard - within)
    yield why, whole - lost
    yield "lost", lost


def _mute(pods: Sequence[Held], silences: Sequence[Silence]) -> list[Piece]:
    """Return when a lease could not be observed."""
    nodes = {each.node for each in pods} | {EVERYWHERE}
    really = (
        Piece(each.when.since - PROOF_S, each.when.until + HEARD_AGAIN_S) for each in silences if each.node in nodes
    )
    lives = {each.life[0] for each in pods} | {BY_THE_BOOKS}
    ours = (each.when for each in silences if each.node in lives)
    return merged(chain(really, (Piece(since, min(until, since + BELIEVED_S)) for since, until in ours)))


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Return spans in order, without overlaps."""
    found: list[Piece] = []
    for since, until in sorted(pieces):
        if found and since <= found[-1].until:
            found[-1] = Piece(found[-1].since, max(found[-1].until, until))
        else:
            found.append(Piece(since, until))
    return found


def cut(pieces: Iterable[Piece], to: Piece) -> list[Piece]:
    """Return the parts of spans inside another span."""
    parts = (Piece(max(each.since, to.since), min(each.until, to.until)) for each in pieces)
    return [part for part in parts if part.since < part.until]


def minus(pieces: Iterable[Piece], others: Sequence[Piece]) -> list[Piece]:
    """Return the parts of spans outside of other, merged spans."""
    edges = [0.0, *chain.from_iterable(others), EVER]
    between = [Piece(*pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
    return [part for each in pieces for part in chain(*(cut([each], free) for free in between))]


def length(pieces: Iterable[Piece]) -> float:
    return sum(until - since for since, until in pieces)
