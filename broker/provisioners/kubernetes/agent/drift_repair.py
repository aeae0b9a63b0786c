"""Repair drift of our objects while leases run, one apply at a time.

It runs in a thread of its own. Applying what is already there changes nothing, so nothing is read
beforehand.
"""

from collections import deque
from collections.abc import Callable, Iterable

import structlog

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal
from broker.provisioners.kubernetes.client.kinds import object_ref
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.lease_creation import ForeignObjectError, restore_object
from broker.provisioners.kubernetes.render.spec import Manifest
from ports import clock

log = structlog.get_logger(__name__)
IDLE_S = 0.2


class DriftRepairer:
    """Applies queued manifests at a limited rate; failed ones wait for the next round."""

    def __init__(self, transport: Transport) -> None:
        self._transport, self._waiting, self._every_s = transport, deque[Manifest](), 0.0

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def enqueue(self, manifests: Iterable[Manifest], *, every_s: float) -> None:
        """Queue manifests to apply."""
        self._every_s = every_s
        self._waiting.extend(manifests)

    def follow(self, going: Callable[[], bool]) -> None:
        """Work until told to stop."""
        due = 0.0
        while going():
            if self._waiting and clock.monotonic() >= due:
                due = clock.monotonic() + self._every_s
                self.repair_next()
            clock.sleep(IDLE_S)

    def repair_next(self) -> None:
        """Apply the next manifest."""
        manifest = self._waiting[0]
        try:
            if restore_object(self._transport.within(), manifest):
                log.warning("managed object was changed; repaired", what=str(object_ref(manifest)))
        except (ClusterUnreachable, ApiRefusal, ForeignObjectError) as error:
            log.warning("managed object not repaired", what=str(object_ref(manifest)), why=str(error))
        self._waiting.popleft()  # removed last: the queue counts as busy until then
