"""When each pod was seen in a cluster, to judge launch times."""

import threading

from urllib3.exceptions import HTTPError

from ports import clock
from tests.controlplane.api import Api, Refused

LEASE = "gpubroker.dev/lease"


class PodTimeRecorder(threading.Thread):
    """Watches pods, and records when each lease ran and ended.

    Moments are of `clock.monotonic`, which whoever asked for the lease reads, too.
    """

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.api, self.stopped = api, threading.Event()
        self.running: dict[str, float] = {}
        self.ended: dict[str, float] = {}

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                version = self.api.get("/api/v1/pods", limit=1)["metadata"]["resourceVersion"]
                for event in self.api.watch("/api/v1/pods", seconds=600, labelSelector=LEASE, resourceVersion=version):
                    self._record(event)
                    if self.stopped.is_set():
                        return
            except (Refused, HTTPError, OSError, KeyError):  # the server went away: begin anew
                clock.sleep(0.2)

    def _record(self, event: dict[str, object]) -> None:
        pod = event["object"]
        assert isinstance(pod, dict)
        lease = pod["metadata"].get("labels", {}).get(LEASE)
        if lease is None:
            return
        if event["type"] == "DELETED":
            self.ended.setdefault(lease, clock.monotonic())
        elif pod["status"].get("phase") == "Running":
            self.running.setdefault(lease, clock.monotonic())

    def __enter__(self) -> "PodTimeRecorder":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
