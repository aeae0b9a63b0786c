"""Invoices of equivalent lease histories.

`make bench ONLY=billing_metamorphic` does the same for a thousand orders of arrival.
"""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.billing.equivalent_histories import CHANGES, LeaseHistory, invoice_history
from tests.billing.random_tenants import SECOND
from tests.billing.rating.test_lease_rating import undone

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("change", sorted(CHANGES))
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_equivalent_histories_have_equal_invoices(change: str, seed: int) -> None:
    with undone():
        chance = random.Random(seed)
        tale = LeaseHistory.by_chance(chance)
        assert invoice_history(CHANGES[change](tale, chance), chance) == invoice_history(tale, chance)


def test_one_more_second_changes_the_invoice() -> None:
    chance = random.Random(4)
    tale = LeaseHistory.by_chance(chance)
    ran = next(n for n, (_, steps) in enumerate(tale.lives) if steps[-2].after == "active")
    project, steps = tale.lives[ran]
    longer = (project, (*steps[:-1], replace(steps[-1], at=steps[-1].at + SECOND)))
    lives = (*tale.lives[:ran], longer, *tale.lives[ran + 1 :])
    assert len(invoice_history(tale, chance)) > 1
    assert invoice_history(replace(tale, lives=lives), chance) != invoice_history(tale, chance)
