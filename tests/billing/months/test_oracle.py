"""Months of chance, with commitments, tiers, discounts and minimums: the product against the program that shares no
line with it.
"""

import random

import pytest

from billing.models import Invoice
from billing.services import commitments, drafts, minimums, rating
from tenants.services.walls import as_tenant
from tests.billing import stories
from tests.billing.histories import EURO, LONG_AGO, OPERATOR, sold
from tests.billing.months.terms import checked, given, tiered
from tests.billing.stories import Market, month_start

pytestmark = pytest.mark.django_db
START, END, NOW = month_start(2026, 1), month_start(2026, 4), month_start(2026, 12)
MODELS = ("graduated", "volume", "package")


def in_tiers(chance: random.Random, model: str) -> object:
    """Sell something whose tiers lie where stories of a few hours reach them."""
    offering, nano = sold(None), chance.randrange(1, 5 * EURO)
    if model == "package":
        size = chance.randrange(600, 20_000)
        starts, prices = [size], [chance.randrange(size * nano // 3600 + 1)]
    else:
        starts = sorted({chance.randrange(1, 40_000) for _ in range(3)})
        prices = [chance.randrange(nano + 1) for _ in starts]
    tiered(offering, model, starts, prices, nano=nano, valid=(LONG_AGO, None))
    return offering


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_independent_program_comes_to_the_same(seed: int) -> None:
    chance = random.Random(seed)
    sells = stories.market(chance, START, END, offerings=2, changes=3)
    sells = Market([*sells.offerings, *(in_tiers(chance, model) for model in MODELS)], sells.changes)  # type: ignore[list-item]
    story = stories.tenant(stories.ZONES[seed])
    stories.own_prices(chance, story, sells, cuts=4)
    stories.lives(chance, story, sells, START, END, leases=30)
    for n in range(3):
        size = {"percent_bp": chance.randrange(1, 10_001)} if n else {"minor": chance.randrange(1, 5000)}
        scope = {"offerings": [chance.choice(sells.offerings).pk]} if n == 2 else {}
        given(story.tenant, first_month="2026-01", last_month=f"2026-0{n + 2}", **size, **scope)
    least = {"minor": chance.randrange(1, 10_000), "since": START, "until": END}
    minimums.agree(story.tenant, **least, actor=OPERATOR, now=START)
    for offering in sells.offerings:
        if offering.price_class == "on_demand":
            about = {"units": chance.randrange(1, 4), "nano_per_hour": chance.randrange(1, EURO)}
            commitments.agree(
                story.tenant, offering, **about, since=START, until=END, actor=OPERATOR, now=START
            )
    assert not rating.rate(now=NOW).gaps
    drafts.refresh(story.tenant, now=NOW)
    assert drafts.refresh(story.tenant, now=NOW) == 0
    with as_tenant(story.tenant.pk):
        found = list(Invoice.objects.select_related("period"))
    assert len(found) >= 3
    for invoice in found:
        assert checked(invoice).total == invoice.total
