"""Putting right what somebody changed or deleted while a lease runs: one apply at a time, in a thread of its own.

An apply of what is there already changes nothing, so that nobody need look beforehand.
"""

from collections import deque
from collections.abc import Callable, Iterable

import structlog

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.kinds import ref_of
from broker.provisioners.kubernetes.making import InTheWay, restore
from broker.provisioners.kubernetes.refusals import Refusal
from broker.provisioners.kubernetes.spec import Manifest
from broker.provisioners.kubernetes.transport import Transport
from ports import clock

log = structlog.get_logger(__name__)
NAP_S = 0.2


class Mender:
    """Applies what it is handed, never faster than it is told to; what fails has its turn in the next round."""

    def __init__(self, transport: Transport) -> None:
        self._transport, self._waiting, self._every_s = transport, deque[Manifest](), 0.0

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def take(self, manifests: Iterable[Manifest], *, every_s: float) -> None:
        """Take what shall be there in the cluster."""
        self._every_s = every_s
        self._waiting.extend(manifests)

    def follow(self, going: Callable[[], bool]) -> None:
        """Work until told to stop."""
        due = 0.0
        while going():
            if self._waiting and clock.monotonic() >= due:
                due = clock.monotonic() + self._every_s
                self.once()
            clock.sleep(NAP_S)

    def once(self) -> None:
        """Put one thing right."""
        manifest = self._waiting[0]
        try:
            if restore(self._transport.within(), manifest):
                log.warning("somebody changed what is ours; it was put right", what=str(ref_of(manifest)))
        except (Unanswered, Refusal, InTheWay) as error:
            log.warning("not put right", what=str(ref_of(manifest)), why=str(error))
        self._waiting.popleft()  # last: until then nobody hands over more
