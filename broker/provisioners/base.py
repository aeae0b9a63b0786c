"""What every provisioner promises. The simulated one and Kubernetes pass the same behaviour tests."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from broker.domain.placement.warmth import Cutting

ORDER = re.compile(r"l-([0-9a-z]+)-g(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class Slice:
    """One place the order is for: a card and a run of its memory slices."""

    node: str
    gpu: str
    profile: str
    start: int
    size: int
    host: str = ""  # the node's name in its cluster
    uuid: str = ""  # the card's
    grid: int = 0  # units of the whole card
    memory_gb: int = 0  # of the whole card
    asks: str = ""  # how its cluster calls such a slice, where that is not the usual name
    cutting: Cutting | None = None  # what its card needs for it, where our books tell: in a simulated cluster


@dataclass(frozen=True)
class Kept:
    """A volume, as much of it as its cluster must know."""

    id: str
    size_gib: int
    tenant_id: str = ""
    project_id: str = ""


@dataclass(frozen=True)
class Order:
    """Everything a provisioner needs to make one lease real. The name is its own for ever: it carries the fence."""

    name: str
    lease_id: str
    generation: int
    placed_at: datetime
    image: str
    command: str
    slices: tuple[Slice, ...]
    workload: str = ""  # a template's name; empty: by its image
    env: tuple[tuple[str, str], ...] = ()
    ssh_keys: tuple[str, ...] = ()
    access_token: str = ""  # opens what is reached by a link
    cluster: str = ""  # the id of the cluster it was placed in
    domain: str = ""  # below which its page has a name, and what routes it there
    door: str = ""
    provisioner: str = ""  # that cluster's, a key of settings.PROVISIONERS
    tenant_id: str = ""
    project_id: str = ""
    gpu_model: str = ""
    profile: str = ""
    isolation: str = ""
    price_class: str = ""
    frozen: str = ""  # why nothing is asked of that cluster
    volume: Kept | None = None  # mounted at its home, and kept when the order is removed
    paid_until: datetime | None = None  # nothing runs on after this, even if nobody is left to stop it
    doubted: bool = False  # what is remembered of it is not enough: its cluster itself is asked


class Seen(StrEnum):
    PENDING = "pending"  # made, not ready yet
    READY = "ready"  # readiness verified
    REFUSED = "refused"  # will never become ready; `text` says why
    LOST = "lost"  # its node or a card of it is gone; `last_seen` is the last proof of life
    ENDED = "ended"  # its own command is over, well or badly; `text` says which, `last_seen` is when
    GONE = "gone"  # confirmed not there: the places are free


@dataclass(frozen=True)
class Remains:
    """Something of an order that ended, which its cluster keeps until our books know of it."""

    name: str
    uid: str


@dataclass(frozen=True)
class Observation:
    """What was seen of an order at a moment."""

    seen: Seen
    text: str = ""
    percent: int | None = None
    last_seen: datetime | None = None
    again_in_s: float = 5.0  # when it is worth looking again
    answered: bool = True  # False: nobody knows; made up by whoever asked in vain
    runs: bool = False  # though not ready: it holds its slices, and `last_seen` is when that was so
    remains: tuple[Remains, ...] = ()  # of what was replaced or shall be, once this has been written down
    proven_until: datetime | None = None  # no later moment proves life, whatever was believed before


class Unanswered(Exception):
    """The cluster did not answer in time; what was asked may have happened or not. It is asked again later."""

    def __init__(self, text: str = "", *, again_in_s: float | None = None) -> None:
        super().__init__(text)
        self.again_in_s = again_in_s  # when the cluster itself said that it is worth asking again


class Provisioner(Protocol):
    """Makes leases real. Every call may be repeated, may be the second with the same order, may be Unanswered."""

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        """Make it if it is not there, and say how far it is."""

    def observe(self, order: Order, *, now: datetime) -> Observation:
        """Say how it is, without making anything."""

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        """Keep what ended no longer: what was observed of it is in our books."""

    def remove(self, order: Order, *, now: datetime) -> Observation:
        """Take it down; GONE only once that is confirmed. That it ended is in our books already."""

    def names(self) -> list[str]:
        """Name all that this installation made and is still there, whether or not a lease accounts for it."""

    def remove_named(self, name: str, *, now: datetime) -> None:
        """Take down what belongs to no lease."""

    def remove_volume(self, volume: Kept, *, now: datetime) -> Observation:
        """Delete a volume with all that is on it; GONE only once that is confirmed, PENDING until then."""


def order_name(lease_id: str, generation: int) -> str:
    """Name the cluster's object for one generation of a lease: the same for ever, never another's."""
    return f"l-{lease_id.removeprefix('lse_')}-g{generation}"


def order_parts(name: str) -> tuple[str, int]:
    """Return the lease and the generation that an order's name tells of; of what was never one, no lease at all."""
    found = ORDER.fullmatch(name)
    return (f"lse_{found[1]}", int(found[2])) if found else ("", 0)
