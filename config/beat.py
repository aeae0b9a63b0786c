"""Celery beat with a heartbeat: it ticks every few seconds and serves no requests."""

from typing import Any

from celery.beat import PersistentScheduler

from ports.heartbeat import HeartbeatFile


class HeartbeatScheduler(PersistentScheduler):  # type: ignore[misc]
    """Beat scheduler that writes a heartbeat at every tick."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.alive = HeartbeatFile("beat")
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        self.alive()
        return float(super().tick(*args, **kwargs))
