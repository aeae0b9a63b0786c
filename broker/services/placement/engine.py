"""The stock of this process, brought up to date before every look; forgotten and read anew whenever in doubt.

It only ever proposes: the constraints of the database decide, and whoever is refused looks again. What the asker's own
transaction has changed is seen, and read again the next time: it may have been undone since.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import RLock

from broker.domain.placement.engines import Engine
from broker.services.placement import feed
from broker.services.placement.feed import Mark
from broker.services.placement.stock import Stock
from ports import clock

ANEW_S = 300.0  # whatever went wrong unseen is put right after so long, as the sweep does with leases


class Keeper:
    """One stock, and how far it has looked."""

    def __init__(self, engine: Engine = Engine.BID_PRICE) -> None:
        self._lock, self._engine = RLock(), engine
        self._stock, self._mark = Stock(engine), Mark("", 0, ())
        self._again: set[str] = set()  # cards as a transaction saw them that may be undone
        self._read_at = 0.0

    @contextmanager
    def up_to_date(self) -> Iterator[Stock]:
        """Have the stock as it is now, alone, until the block ends."""
        with self._lock:
            try:
                self._catch_up()
                yield self._stock
            except BaseException:
                self.forget()  # whatever it was stopped at, and whatever somebody had tried out in it
                raise

    def forget(self) -> None:
        self._stock, self._mark, self._again = Stock(self._engine), Mark("", 0, ()), set()

    def _catch_up(self) -> None:
        known = self._mark.books and clock.monotonic() - self._read_at < ANEW_S
        news = feed.since(self._mark) if known else None
        if news is None or news.too_many or not _follows(news.mark, self._mark):
            self._read_all()
            return
        own = self._cards_of(news.own)
        if again := self._cards_of(news.touched) | self._again:
            found = feed.cards_with(again)
            self._stock.drop(again - {card.gpu for card in found})
            self._stock.put(found)
        self._mark, self._again = news.mark, own | self._cards_of(news.own)

    def _read_all(self) -> None:
        self.forget()
        mark = feed.now()
        self._stock.put(feed.every_card())
        own = feed.since(Mark(mark.books, mark.upto, ())).own
        self._mark, self._again, self._read_at = mark, self._cards_of(own), clock.monotonic()

    def _cards_of(self, touched: Mapping[str, set[str]]) -> set[str]:
        """Return the cards that are concerned; one that came to a node or left it was written itself."""
        on_nodes = {gpu for node in touched["node"] for gpu in self._stock.by_node.get(node, ())}
        clusters = touched["cluster"]
        in_clusters = (
            {card.gpu for card in self._stock.cards.values() if card.cluster_id in clusters}
            if clusters
            else ()
        )
        return touched["gpu"].union(on_nodes, in_clusters)


def _follows(new: Mark, old: Mark) -> bool:
    return new.books == old.books and new.upto >= old.upto


_keeper = Keeper()


def up_to_date() -> AbstractContextManager[Stock]:
    """Have this process's stock as it is now, alone, until the block ends. Nothing in it may wait for a lock."""
    return _keeper.up_to_date()


@contextmanager
def choosing_by(engine: Engine) -> Iterator[None]:
    """Have this process choose by another rule until the block ends, to see what it would have come to."""
    global _keeper
    usual, _keeper = _keeper, Keeper(engine)
    try:
        yield
    finally:
        _keeper = usual


def _forget() -> None:
    """Begin anew in a process that was forked off: its parent's lock may have been held."""
    global _keeper
    _keeper = Keeper()


os.register_at_fork(after_in_child=_forget)
