"""A cluster that is no longer the one we knew: it is asked nothing, and nothing it says is believed."""

from datetime import datetime

from broker.provisioners.base import Kept, Observation, Order, Remains, Unanswered


class FrozenProvisioner:
    """Stands in until a person says what is true."""

    def __init__(self, why: str) -> None:
        self._why = why

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        raise self._waits()

    def observe(self, order: Order, *, now: datetime) -> Observation:
        raise self._waits()

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        raise self._waits()

    def remove(self, order: Order, *, now: datetime) -> Observation:
        raise self._waits()

    def names(self) -> list[str]:
        raise self._waits()

    def remove_named(self, name: str, *, now: datetime) -> None:
        raise self._waits()

    def remove_volume(self, volume: Kept, *, now: datetime) -> Observation:
        raise self._waits()

    def _waits(self) -> Unanswered:
        return Unanswered(f"it waits for an operator: {self._why}", again_in_s=30.0)
