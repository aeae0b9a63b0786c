"""The agent's pulse: a small object that it changes every few seconds and sees change by its own watch.

That one write proves all at once: the cluster answers, lets us in, is the one that joined, and is being followed.
Nobody else need ask it for any of that.
"""

from collections.abc import Callable

import structlog

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels, refusals
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, Ref
from broker.provisioners.kubernetes.objects import Thing
from broker.provisioners.kubernetes.render.cluster import NAMESPACE
from broker.provisioners.kubernetes.transport import Api, Transport
from ports import clock

log = structlog.get_logger(__name__)
EVERY_S, PATIENCE_S, NAP_S = 5.0, 3.0, 0.2
LATE_S = 5.0
BEATS = f"{labels.DOMAIN}/beats"  # an annotation


def pulse_ref(cluster_id: str) -> Ref:
    """Name a cluster's own pulse: one that answers without it is another cluster, or one that nobody followed yet."""
    return Ref(CONFIG_MAP, f"pulse-{cluster_id.replace('_', '-')}", NAMESPACE)


def under_way_s(seen: Thing) -> float:
    """Return how long a pulse was on its way to us: what else we know is as old, and no younger."""
    sent = seen.metadata.annotations.get(BEATS, "")
    return max(clock.milliseconds() - int(sent), 0) / 1000 if sent.isdecimal() else 0.0


class Pulse:
    """Beats in a thread of its own, but only while every watch is open: it vouches for all of them."""

    def __init__(
        self,
        transport: Transport,
        ref: Ref,
        installation: str,
        *,
        well: Callable[[], bool],
        strange: Callable[[Api, Thing | None], bool],
    ) -> None:
        self._transport, self._ref, self._well, self._strange = transport, ref, well, strange
        self._installation, self.beats = installation, 0

    def follow(self, going: Callable[[], bool]) -> None:
        """Beat until told to stop."""
        due = 0.0
        while going():
            if clock.monotonic() >= due and self._well():
                due = clock.monotonic() + EVERY_S
                self.once()
            clock.sleep(NAP_S)

    def once(self) -> None:
        """Beat once; what goes wrong is silence, and is noticed as such by all who look for the pulse."""
        api = self._transport.within(PATIENCE_S)
        try:
            answer = self._beat(api)
        except (Unanswered, refusals.Refusal) as trouble:
            log.warning("no pulse", why=str(trouble))
            return
        if answer and not self._strange(api, answer):
            self.beats += 1

    def _beat(self, api: Api) -> Thing | None:
        """Change the object; where it is missing the cluster may be another one, which is asked first."""
        change = {"metadata": {"annotations": {BEATS: f"{clock.milliseconds()}"}}}
        try:
            return api.merge(self._ref, change, manager=labels.PROJECTS)
        except refusals.Missing:
            if self._strange(api, None):
                return None
        marks = {labels.MANAGED_BY: labels.US, labels.ROLE: labels.PULSE_ROLE}
        if self._installation:
            marks[labels.INSTALLATION] = self._installation
        meta = {"name": self._ref.name, "namespace": self._ref.namespace, "labels": marks}
        kind = {"apiVersion": self._ref.kind.api_version, "kind": self._ref.kind.name}
        return api.create({**kind, "metadata": meta}, manager=labels.PROJECTS)
