"""What PostgreSQL charges is what somebody comes to who walks through every second with a calendar and fractions.

`make bench ONLY=billing_oracle` does the same for ten thousand tenant-months.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.services import drafts, rating
from tests.billing import stories
from tests.billing.billed import compared, differences
from tests.billing.histories import at
from tests.billing.services.test_rating import undone
from tests.billing.stories import month_start

pytestmark = pytest.mark.django_db
NOW = at("2027-12-01 00:00:00")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(stories.ZONES), st.integers(1, 22))
def test_sql_charges_what_every_single_second_costs(seed: int, zone: str, month: int) -> None:
    chance, since, until = random.Random(seed), month_start(2026, month), month_start(2026, month + 2)
    with undone():
        sells = stories.market(chance, since, until, offerings=2, changes=2)
        story = stories.tenant(zone)
        stories.own_prices(chance, story, sells, cuts=5)
        stories.lives(chance, story, sells, since, until, leases=8)
        rating.rate(now=NOW)
        drafts.refresh(story.tenant, now=NOW)
        found = compared(story, sells.prices)
        assert differences(found) == []
        assert found.charges >= 0


def test_a_charge_that_is_a_second_off_would_be_found() -> None:
    chance, since, until = random.Random(1), month_start(2026, 3), month_start(2026, 5)
    sells = stories.market(chance, since, until, offerings=1, changes=1)
    story = stories.tenant("Europe/Berlin")
    stories.lives(chance, story, sells, since, until, leases=20)
    rating.rate(now=NOW)
    drafts.refresh(story.tenant, now=NOW)
    assert compared(story, sells.prices).charges > 10
    for step in story.steps:
        if step.after == "active":
            step.at += stories.SECOND
            break
    assert differences(compared(story, sells.prices))
