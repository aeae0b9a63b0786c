"""Celery's beat with a sign of life: it ticks every few seconds, and answers nobody."""

from typing import Any

from celery.beat import PersistentScheduler

from ports.alive import Sign


class Alive(PersistentScheduler):  # type: ignore[misc]
    """Rings by the timetable, and says at every tick that it goes on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.alive = Sign("beat")
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        self.alive()
        return float(super().tick(*args, **kwargs))
