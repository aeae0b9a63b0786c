"""The process's in-memory stock of GPUs, updated before every use.

It is discarded and read again when in doubt. It only proposes: the constraints of the database decide, and
whoever is refused tries again. Changes of the caller's own transaction are visible, and read again the
next time: they may have been rolled back since.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import RLock

from broker.domain.placement.costs.engines import PlacementEngine
from broker.services.placement import gpu_changes
from broker.services.placement.gpu_changes import ReadPosition
from broker.services.placement.gpu_index import GpuIndex
from ports import clock

RELOAD_AFTER_S = 300.0  # read everything again after this, to correct undetected errors


class SharedIndex:
    """A stock with the position up to which it has read changes."""

    def __init__(self, engine: PlacementEngine = PlacementEngine.BID_PRICE) -> None:
        self._lock, self._engine = RLock(), engine
        self._stock, self._mark = GpuIndex(engine), ReadPosition("", 0, ())
        self._again: set[str] = set()  # GPUs read inside a transaction that may be rolled back
        self._read_at = 0.0

    @contextmanager
    def up_to_date(self) -> Iterator[GpuIndex]:
        """Yield the current stock, locked until the block ends."""
        with self._lock:
            try:
                self._catch_up()
                yield self._stock
            except BaseException:
                self.forget()  # trial placements may be left in it
                raise

    def forget(self) -> None:
        self._stock, self._mark, self._again = GpuIndex(self._engine), ReadPosition("", 0, ()), set()

    def _catch_up(self) -> None:
        known = self._mark.books and clock.monotonic() - self._read_at < RELOAD_AFTER_S
        changes = gpu_changes.changes_since(self._mark) if known else None
        if changes is None or changes.too_many or not _is_later(changes.mark, self._mark):
            self._read_all()
            return
        own = self._gpus_of(changes.uncommitted)
        if again := self._gpus_of(changes.touched) | self._again:
            found = gpu_changes.read_gpus(again)
            self._stock.drop(again - {gpu.gpu for gpu in found})
            self._stock.put(found)
        self._mark, self._again = changes.mark, own | self._gpus_of(changes.uncommitted)

    def _read_all(self) -> None:
        self.forget()
        mark = gpu_changes.current_position()
        self._stock.put(gpu_changes.read_all_gpus())
        own = gpu_changes.changes_since(ReadPosition(mark.books, mark.upto, ())).uncommitted
        self._mark, self._again, self._read_at = mark, self._gpus_of(own), clock.monotonic()

    def _gpus_of(self, touched: Mapping[str, set[str]]) -> set[str]:
        """Return the GPUs affected by changes of GPUs, nodes and clusters.

        A GPU that came to a node or left it was written itself.
        """
        on_nodes = {gpu_id for node in touched["node"] for gpu_id in self._stock.by_node.get(node, ())}
        clusters = touched["cluster"]
        in_clusters = {gpu.gpu for gpu in self._stock.gpus.values() if gpu.cluster_id in clusters} if clusters else ()
        return touched["gpu"].union(on_nodes, in_clusters)


def _is_later(new: ReadPosition, old: ReadPosition) -> bool:
    return new.books == old.books and new.upto >= old.upto


_shared_index = SharedIndex()


def current_index() -> AbstractContextManager[GpuIndex]:
    """Yield this process's current stock, locked until the block ends.

    Nothing inside the block may wait for a lock.
    """
    return _shared_index.up_to_date()


@contextmanager
def using_engine(engine: PlacementEngine) -> Iterator[None]:
    """Use another placement engine inside the block, for what-if runs."""
    global _shared_index
    usual, _shared_index = _shared_index, SharedIndex(engine)
    try:
        yield
    finally:
        _shared_index = usual


def _reset_after_fork() -> None:
    """Reset in a forked process: the parent's lock may have been held."""
    global _shared_index
    _shared_index = SharedIndex()


os.register_at_fork(after_in_child=_reset_after_fork)
