"""Order relocations so that every target is free when its slice arrives."""

from collections.abc import Sequence
from dataclasses import replace

from broker.domain.defragmentation.relocation_draft import SliceRelocation
from broker.domain.placement.costs.state_tables import EMPTY, StateTable


def order_relocations(
    table: StateTable, steps: Sequence[SliceRelocation], spare_gpu: int | None = None
) -> list[SliceRelocation] | None:
    """Order relocations; None where they wait for each other in a cycle.

    Their targets are free except for slices that are relocated too. A cycle is broken by relocating one
    slice by way of the spare GPU, which must be empty, and is empty again in the end.
    """
    return _RelocationOrder(table, steps, spare_gpu).ordered()


class _RelocationOrder:
    def __init__(self, table: StateTable, steps: Sequence[SliceRelocation], spare: int | None) -> None:
        self._table, self._spare, self._parked = table, spare, EMPTY
        self._steps = list(steps)
        from_unit = {(s.gpu, unit): n for n, s in enumerate(steps) for unit in self._occupied_units(s.profile, s.start)}
        to_units = [[(s.to_gpu, unit) for unit in self._occupied_units(s.profile, s.to_start)] for s in steps]
        self._waits_for = [{from_unit[unit] for unit in units if unit in from_unit} for units in to_units]
        self._waiting: list[set[int]] = [set() for _ in steps]
        for number, others in enumerate(self._waits_for):
            for other in others:
                self._waiting[other].add(number)

    def ordered(self) -> list[SliceRelocation] | None:
        done: list[SliceRelocation] = []
        remaining = dict.fromkeys(range(len(self._steps)))
        ready = [number for number in reversed(remaining) if not self._waits_for[number]]
        while remaining:
            if not ready:
                parked = self._find_in_cycle(next(iter(remaining)))
                detour = self._detour(parked)
                if detour is None:
                    return None
                done.append(detour)
                ready += self._release_waiting(parked)
                continue
            number = ready.pop()
            del remaining[number]
            step = self._steps[number]
            done.append(step)
            if step.gpu == self._spare:
                self._parked = self._table.state_after_removing(self._parked, step.profile, step.start)
            else:
                ready += self._release_waiting(number)
        return done

    def _release_waiting(self, number: int) -> list[int]:
        """Return the relocations whose target became free by this one."""
        free = []
        for other in sorted(self._waiting[number], reverse=True):
            self._waits_for[other].discard(number)
            if not self._waits_for[other]:
                free.append(other)
        self._waiting[number] = set()
        return free

    def _find_in_cycle(self, number: int) -> int:
        visited = set()
        while number not in visited:
            visited.add(number)
            number = min(self._waits_for[number])
        return number

    def _detour(self, number: int) -> SliceRelocation | None:
        """Park a slice on the spare GPU: its relocation starts from there now."""
        step = self._steps[number]
        if self._spare in (None, step.gpu) or not (options := self._table.options[step.profile][self._parked]):
            return None
        start, self._parked = options[0]
        self._steps[number] = replace(step, gpu=self._spare, start=start)
        return replace(step, to_gpu=self._spare, to_start=start, gain=0)

    def _occupied_units(self, profile: int, start: int) -> list[int]:
        spec = self._table.profiles[profile]
        # The media engines count as one more unit after the last.
        return [*range(start, start + spec.memory), *([self._table.grid] if spec.media else ())]
