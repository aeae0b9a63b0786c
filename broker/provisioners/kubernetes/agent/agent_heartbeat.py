"""The agent's heartbeat: an object it changes and sees change by its watch.

That one write every few seconds proves that the cluster answers, admits us, is the registered one, and
is being followed. Nobody else need ask the cluster for any of that.
"""

from collections.abc import Callable

import structlog

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import api_errors
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, ObjectRef
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from broker.provisioners.kubernetes.render.cluster import NAMESPACE
from ports import clock

log = structlog.get_logger(__name__)
EVERY_S, PATIENCE_S, IDLE_S = 5.0, 3.0, 0.2
LATE_S = 5.0
BEAT_ANNOTATION = f"{labels.DOMAIN}/beats"  # an annotation


def heartbeat_ref(cluster_id: str) -> ObjectRef:
    """Return the reference of a cluster's heartbeat object.

    A cluster that answers without it is another cluster, or one that no agent has followed yet.
    """
    return ObjectRef(CONFIG_MAP, f"pulse-{cluster_id.replace('_', '-')}", NAMESPACE)


def heartbeat_age_s(heartbeat: ClusterObjectHeader) -> float:
    """Return the seconds a heartbeat took to reach us.

    Everything else we know is at least as old.
    """
    sent = heartbeat.metadata.annotations.get(BEAT_ANNOTATION, "")
    return max(clock.milliseconds() - int(sent), 0) / 1000 if sent.isdecimal() else 0.0


class AgentHeartbeat:
    """Sends heartbeats in its own thread, but only while every watch is open.

    A heartbeat vouches for all watches.
    """

    def __init__(
        self,
        transport: Transport,
        ref: ObjectRef,
        installation: str,
        *,
        well: Callable[[], bool],
        is_foreign: Callable[[KubernetesApi, ClusterObjectHeader | None], bool],
    ) -> None:
        self._transport, self._ref, self._well, self._is_foreign = transport, ref, well, is_foreign
        self._installation, self.beats = installation, 0

    def follow(self, going: Callable[[], bool]) -> None:
        """Send heartbeats until told to stop."""
        due = 0.0
        while going():
            if clock.monotonic() >= due and self._well():
                due = clock.monotonic() + EVERY_S
                self.send_heartbeat()
            clock.sleep(IDLE_S)

    def send_heartbeat(self) -> None:
        """Send one heartbeat; failures are only logged.

        Whoever reads the heartbeat notices that it is missing.
        """
        api = self._transport.within(PATIENCE_S)
        try:
            answer = self._beat(api)
        except (ClusterUnreachable, api_errors.ApiRefusal) as trouble:
            log.warning("agent heartbeat not written", why=str(trouble))
            return
        if answer and not self._is_foreign(api, answer):
            self.beats += 1

    def _beat(self, api: KubernetesApi) -> ClusterObjectHeader | None:
        """Update the object; if it is missing, check first that the cluster is ours."""
        change = {"metadata": {"annotations": {BEAT_ANNOTATION: f"{clock.milliseconds()}"}}}
        try:
            return api.merge(self._ref, change, manager=labels.PROJECTS)
        except api_errors.ObjectMissing:
            if self._is_foreign(api, None):
                return None
        marks = {labels.MANAGED_BY: labels.MANAGER_NAME, labels.ROLE: labels.PULSE_ROLE}
        if self._installation:
            marks[labels.INSTALLATION] = self._installation
        meta = {"name": self._ref.name, "namespace": self._ref.namespace, "labels": marks}
        kind = {"apiVersion": self._ref.kind.api_version, "kind": self._ref.kind.name}
        return api.create({**kind, "metadata": meta}, manager=labels.PROJECTS)
