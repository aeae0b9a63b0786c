"""What a lease must pass before it may queue or grow. Which gates, and in which order, is a setting."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from broker.models import Lease

Answer = Callable[[], None]


class LeaseGate(Protocol):
    """Judge a lease inside the transaction that queues or enlarges it: return, or raise Refused to undo it all.

    A gate takes what the lease lacks: called again after an extension it takes only the difference.
    No network inside. A gate that asks the database may return what reads the answer: all gates then ask
    before the first answer is waited for.
    """

    def __call__(self, lease: Lease, *, now: datetime) -> Answer | None: ...


@cache
def _load(names: tuple[str, ...]) -> tuple[LeaseGate, ...]:
    return tuple(cast(LeaseGate, import_string(name)) for name in names)


def load() -> tuple[LeaseGate, ...]:
    """Return every gate of settings.LEASE_GATES; raises ImportError for a name that is none."""
    return _load(tuple(settings.LEASE_GATES))


def pass_all(lease: Lease, *, now: datetime) -> None:
    """Call every gate of settings.LEASE_GATES; the first Refused stops it."""
    for answer in [gate(lease, now=now) for gate in load()]:
        if answer is not None:
            answer()
