"""SQL charges against a per-second oracle with a calendar.

`make bench ONLY=billing_oracle` does the same for ten thousand tenant-months.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from tests.billing import random_tenants
from tests.billing.charged_rows import compare_with_oracle, differences
from tests.billing.histories import utc
from tests.billing.random_tenants import month_start
from tests.billing.rating.test_lease_rating import undone

pytestmark = pytest.mark.django_db
NOW = utc("2027-12-01 00:00:00")


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(random_tenants.ZONES), st.integers(1, 22))
def test_sql_charges_equal_a_second_by_second_calculation(seed: int, zone: str, month: int) -> None:
    chance, since, until = random.Random(seed), month_start(2026, month), month_start(2026, month + 2)
    with undone():
        sells = random_tenants.create_market(chance, since, until, offerings=2, changes=2)
        story = random_tenants.create_random_tenant(zone)
        random_tenants.add_tenant_prices(chance, story, sells, cuts=5)
        random_tenants.add_random_leases(chance, story, sells, since, until, leases=8)
        lease_rating.rate_all_leases(now=NOW)
        drafts.refresh_drafts(story.tenant, now=NOW)
        found = compare_with_oracle(story, sells.prices)
        assert differences(found) == []
        assert found.charges >= 0


def test_the_oracle_detects_a_charge_that_is_one_second_off() -> None:
    chance, since, until = random.Random(1), month_start(2026, 3), month_start(2026, 5)
    sells = random_tenants.create_market(chance, since, until, offerings=1, changes=1)
    story = random_tenants.create_random_tenant("Europe/Berlin")
    random_tenants.add_random_leases(chance, story, sells, since, until, leases=20)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(story.tenant, now=NOW)
    assert compare_with_oracle(story, sells.prices).charges > 10
    for step in story.steps:
        if step.after == "active":
            step.at += random_tenants.SECOND
            break
    assert differences(compare_with_oracle(story, sells.prices))
