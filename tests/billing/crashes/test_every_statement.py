"""The invoice run may be killed anywhere, and run again comes to the same. `make crashes` tries every single point."""

import random

import pytest

from billing.models import InvoiceSeries
from billing.services import numbering
from tests.billing.crashes.dying import COMMIT
from tests.billing.crashes.trial import Ground, broken, undisturbed
from tests.billing.crashes.world import build
from tests.database import OwnDatabase

POINTS = 200  # the least that there must be to choose from
SAMPLE = 8


@pytest.fixture
def ground(own_database: OwnDatabase) -> Ground:
    build()
    return Ground(own_database.server, own_database.name)


def test_killed_before_any_statement_or_commit_and_run_again_it_comes_to_the_same(ground: Ground) -> None:
    whole = undisturbed(ground)
    assert len(whole.said) >= POINTS
    commits = [n for n, what in enumerate(whole.said) if what == COMMIT]
    chosen = {*random.sample(range(len(whole.said)), SAMPLE), *random.sample(commits, 2)}
    assert {point: wrong for point in chosen if (wrong := broken(ground, point, whole))} == {}
    assert broken(ground, commits[len(commits) // 2], whole, by_kill=True) == []


def test_numbers_that_are_handed_out_apart_from_their_invoices_would_be_found(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(series: str, *, count: int = 1) -> int:
        """Take numbers in a transaction of its own, as a sequence does."""
        InvoiceSeries.objects.using("owner").get_or_create(series=series)
        row = InvoiceSeries.objects.using("owner").get(series=series)
        InvoiceSeries.objects.using("owner").filter(series=series).update(next_number=row.next_number + count)
        return row.next_number

    monkeypatch.setattr(numbering, "next_of", at_once)
    whole = undisturbed(ground)
    point = next(n for n, what in enumerate(whole.said) if what.startswith("-- Make these drafts final"))
    assert any("has the numbers" in wrong for wrong in broken(ground, point, whole))
