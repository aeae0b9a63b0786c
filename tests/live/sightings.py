"""When each pod was seen in a cluster, to judge launch times."""

import threading

from urllib3.exceptions import HTTPError

from ports import clock
from tests.controlplane.api import Api, Refused

LEASE = "gpubroker.dev/lease"


class Sightings(threading.Thread):
    """Watches pods, and records when each lease ran and ended.

    Moments are of `clock.monotonic`, which whoever asked for the lease reads, too.
    """

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.api, self.over = api, threading.Event()
        self.running: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    def run(self) -> None:
        while not self.over.is_set():
            try:
                version = self.api.get("/api/v1/pods", limit=1)["metadata"]["resourceVersion"]
                for event in self.api.watch("/api/v1/pods", seconds=600, labelSelector=LEASE, resourceVersion=version):
                    self._take(event)
                    if self.over.is_set():
                        return
            except (Refused, HTTPError, OSError, KeyError):  # the server went away: begin anew
                clock.sleep(0.2)

    def _take(self, event: dict[str, object]) -> None:
        pod = event["object"]
        assert isinstance(pod, dict)
        lease = pod["metadata"].get("labels", {}).get(LEASE)
        if lease is None:
            return
        if event["type"] == "DELETED":
            self.gone.setdefault(lease, clock.monotonic())
        elif pod["status"].get("phase") == "Running":
            self.running.setdefault(lease, clock.monotonic())

    def __enter__(self) -> "Sightings":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
