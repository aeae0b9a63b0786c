"""The order in which slices are moved, so that every place is free when its slice comes."""

from collections.abc import Sequence
from dataclasses import replace

from broker.domain.placement.moving import Step
from broker.domain.placement.tables import EMPTY, Table


def ordered(table: Table, steps: Sequence[Step], spare: int | None = None) -> list[Step] | None:
    """Order steps that are all to be taken, or return None where they wait for each other in a circle.

    Their new places are free but for what moves away itself. A circle is broken by moving one slice by way of the
    spare card, which must be empty, and is empty again in the end.
    """
    return _Order(table, steps, spare).found()


class _Order:
    def __init__(self, table: Table, steps: Sequence[Step], spare: int | None) -> None:
        self._table, self._spare, self._parked = table, spare, EMPTY
        self._steps = list(steps)
        from_unit = {
            (s.card, unit): n for n, s in enumerate(steps) for unit in self._units(s.profile, s.start)
        }
        to_units = [[(s.to_card, unit) for unit in self._units(s.profile, s.to_start)] for s in steps]
        self._waits_for = [{from_unit[unit] for unit in units if unit in from_unit} for units in to_units]
        self._waiting: list[set[int]] = [set() for _ in steps]
        for number, others in enumerate(self._waits_for):
            for other in others:
                self._waiting[other].add(number)

    def found(self) -> list[Step] | None:
        done: list[Step] = []
        left = dict.fromkeys(range(len(self._steps)))
        ready = [number for number in reversed(left) if not self._waits_for[number]]
        while left:
            if not ready:
                parked = self._on_circle(next(iter(left)))
                detour = self._detour(parked)
                if detour is None:
                    return None
                done.append(detour)
                ready += self._freed(parked)
                continue
            number = ready.pop()
            del left[number]
            step = self._steps[number]
            done.append(step)
            if step.card == self._spare:
                self._parked = self._table.without(self._parked, step.profile, step.start)
            else:
                ready += self._freed(number)
        return done

    def _freed(self, number: int) -> list[int]:
        """Return whose new place is free, now that this slice has left its old one."""
        free = []
        for other in sorted(self._waiting[number], reverse=True):
            self._waits_for[other].discard(number)
            if not self._waits_for[other]:
                free.append(other)
        self._waiting[number] = set()
        return free

    def _on_circle(self, number: int) -> int:
        seen = set()
        while number not in seen:
            seen.add(number)
            number = min(self._waits_for[number])
        return number

    def _detour(self, number: int) -> Step | None:
        """Park a slice on the spare card: its step begins there from now on."""
        step = self._steps[number]
        if self._spare in (None, step.card) or not (ways := self._table.moves[step.profile][self._parked]):
            return None
        start, self._parked = ways[0]
        self._steps[number] = replace(step, card=self._spare, start=start)
        return replace(step, to_card=self._spare, to_start=start, gain=0)

    def _units(self, profile: int, start: int) -> list[int]:
        its = self._table.profiles[profile]
        # The media engines of a card are taken as if they were a unit behind its last.
        return [*range(start, start + its.memory), *([self._table.grid] if its.media else ())]
