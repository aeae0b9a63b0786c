"""Random months with all adjustments against the independent verifier."""

import random

import pytest

from billing.models import Invoice
from billing.services.agreements import commitments, minimums
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from tenants.services.rls import tenant_scope
from tests.billing import random_tenants
from tests.billing.agreements.agreed_terms import create_discount, set_tiered_price, verify_invoice
from tests.billing.histories import EURO, LONG_AGO, OPERATOR, create_priced_offering
from tests.billing.random_tenants import Market, month_start

pytestmark = pytest.mark.django_db
START, END, NOW = month_start(2026, 1), month_start(2026, 4), month_start(2026, 12)
MODELS = ("graduated", "volume", "package")


def create_tiered_offering(chance: random.Random, model: str) -> object:
    """Create an offering whose tiers start within a few hours of usage."""
    offering, nano = create_priced_offering(None), chance.randrange(1, 5 * EURO)
    if model == "package":
        size = chance.randrange(600, 20_000)
        starts, prices = [size], [chance.randrange(size * nano // 3600 + 1)]
    else:
        starts = sorted({chance.randrange(1, 40_000) for _ in range(3)})
        prices = [chance.randrange(nano + 1) for _ in starts]
    set_tiered_price(offering, model, starts, prices, nano=nano, valid=(LONG_AGO, None))
    return offering


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_the_verifier_recomputes_random_months_with_adjustments(seed: int) -> None:
    chance = random.Random(seed)
    sells = random_tenants.create_market(chance, START, END, offerings=2, changes=3)
    sells = Market([*sells.offerings, *(create_tiered_offering(chance, model) for model in MODELS)], sells.changes)  # type: ignore[list-item]
    story = random_tenants.create_random_tenant(random_tenants.ZONES[seed])
    random_tenants.add_tenant_prices(chance, story, sells, cuts=4)
    random_tenants.add_random_leases(chance, story, sells, START, END, leases=30)
    for n in range(3):
        size = {"percent_bp": chance.randrange(1, 10_001)} if n else {"minor": chance.randrange(1, 5000)}
        scope = {"offerings": [chance.choice(sells.offerings).pk]} if n == 2 else {}
        create_discount(story.tenant, first_month="2026-01", last_month=f"2026-0{n + 2}", **size, **scope)
    least = {"minor": chance.randrange(1, 10_000), "since": START, "until": END}
    minimums.create_minimum(story.tenant, **least, actor=OPERATOR, now=START)
    for offering in sells.offerings:
        if offering.price_class == "on_demand":
            about = {"units": chance.randrange(1, 4), "nano_per_hour": chance.randrange(1, EURO)}
            commitments.create_commitment(
                story.tenant, offering, **about, since=START, until=END, actor=OPERATOR, now=START
            )
    assert not lease_rating.rate_all_leases(now=NOW).gaps
    drafts.refresh_drafts(story.tenant, now=NOW)
    assert drafts.refresh_drafts(story.tenant, now=NOW) == 0
    with tenant_scope(story.tenant.pk):
        found = list(Invoice.objects.select_related("period"))
    assert len(found) >= 3
    for invoice in found:
        assert verify_invoice(invoice).total == invoice.total
