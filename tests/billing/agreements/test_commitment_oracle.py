"""Commitments on random leases against the verifier and a per-second oracle."""

import random
from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest

from billing.models import Commitment, PriceVersion, Quote
from billing.services.adjustments import commitment_adjustments
from billing.services.agreements import commitment_coverage, commitments
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState as S
from broker.models import Transition
from tenants.models import Project
from tenants.services.rls import tenant_scope
from tests.billing import random_tenants
from tests.billing.agreements.agreed_terms import verify_invoice
from tests.billing.histories import (
    EURO,
    OPERATOR,
    add_ended_lease,
    add_quote,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    set_price,
)
from tests.billing.random_tenants import RandomTenant, month_start

pytestmark = pytest.mark.django_db
START, NOW = month_start(2026, 3), month_start(2026, 12)
MINUTES = 90
Key = tuple[str, str, int]


def create_random_usage(chance: random.Random) -> tuple[RandomTenant, datetime]:
    """Create overlapping leases of two projects around a price change in March."""
    story = random_tenants.create_random_tenant(chance.choice(["UTC", "Europe/Berlin"]))
    since = START + timedelta(days=9)
    offering, other = create_priced_offering(chance.randrange(1, 3 * EURO)), create_priced_offering(EURO)
    set_price(offering, chance.randrange(3 * EURO), since=since + timedelta(seconds=chance.randrange(3000)))
    for _ in range(25):
        begins = since + timedelta(seconds=chance.randrange(-600, 60 * MINUTES))
        what = offering if chance.random() < 0.8 else other
        lease = add_ended_lease(
            chance.choice(story.projects),
            what,
            begins,
            chance.randrange(1, 2400),
            quantity=chance.randrange(1, 4),
        )
        if chance.random() < 0.1:
            version = PriceVersion.objects.filter(offering=what).earliest("valid")
            add_quote(lease, version)
    for what in (offering, other):
        cut = since + timedelta(seconds=chance.randrange(60, 50 * MINUTES))
        spans = list(pairwise([since, cut, since + timedelta(minutes=MINUTES)]))
        for start, until in [*spans, (since + timedelta(seconds=chance.randrange(2000)), cut + timedelta(hours=1))]:
            commitments.create_commitment(
                story.tenant,
                what,
                units=chance.randrange(1, 6),
                nano_per_hour=chance.randrange(1, 2 * EURO),
                since=start,
                until=until,
                actor=OPERATOR,
                now=START,
            )
    return story, since


def per_second_amounts(story: RandomTenant) -> tuple[dict[Key, Fraction], Fraction]:
    """Return the exact amount per invoice line, and of unused commitments."""
    quotes = {quote.lease_id: quote for quote in Quote.objects.select_related("price_version")}
    prices = list(PriceVersion.objects.all())
    found, short = defaultdict[Key, Fraction](Fraction), Fraction(0)
    active = defaultdict[datetime, list[Transition]](list)
    for begun, ended in pairwise(Transition.objects.order_by("lease_id", "seq")):
        if begun.lease_id == ended.lease_id and begun.after == S.ACTIVE:
            for n in range(int((ended.at - begun.at).total_seconds())):
                active[begun.at + timedelta(seconds=n)].append(begun)
    held = defaultdict[datetime, list[Commitment]](list)
    for each in Commitment.objects.all():
        for n in range(int((each.valid.upper - each.valid.lower).total_seconds())):
            held[each.valid.lower + timedelta(seconds=n)].append(each)
    for second in {*active, *held}:
        left = defaultdict[str, list[list[int]]](list)
        for each in sorted(held[second], key=lambda each: (each.valid.lower, each.pk)):
            left[each.offering_id].append([each.units, each.nano_per_hour])
        paid = dict[str, tuple[int, int]]()
        for use in active[second]:
            price = next(p for p in prices if p.offering_id == use.offering_id and second in p.valid)
            quote = quotes.get(use.lease_id)
            capped = quote is not None and quote.nano_per_hour < price.nano_per_hour
            of = quote.price_version if quote and capped else price
            paid[use.lease_id] = of.pk, of.nano_per_hour
        for use in sorted(active[second], key=lambda use: (-paid[use.lease_id][1], use.lease_id)):
            line, nano = paid[use.lease_id]
            cost = use.quantity * nano
            units = use.quantity
            for free in left[use.offering_id]:
                covered = min(units, free[0])
                free[0], units = free[0] - covered, units - covered
                cost -= covered * max(0, nano - free[1])
            found[use.project_id, use.offering_id, line] += Fraction(cost, 3600 * 10**9)
        short += sum(Fraction(units * nano, 3600 * 10**9) for each in left.values() for units, nano in each)
    return dict(found), short


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_random_usage_costs_equal_a_second_by_second_calculation(seed: int) -> None:
    story, _ = create_random_usage(random.Random(seed))
    assert not lease_rating.rate_all_leases(now=NOW).gaps
    drafts.refresh_drafts(story.tenant, now=NOW)
    assert drafts.refresh_drafts(story.tenant, now=NOW) == 0
    with tenant_scope(story.tenant.pk):
        wanted, short = per_second_amounts(story)
        assert Project.objects.filter(pk__in={key[0] for key in wanted}).count() == 2
    (invoice,) = invoices_of(story.tenant)
    found = {
        (line.project_id, line.offering_id, line.price_version_id): Fraction(int(line.exact_num), 3600 * 10**9)
        for line in invoice_lines(invoice)
    }
    assert found.pop(("", "shortfall", 0), Fraction(0)) == short
    assert found == wanted
    assert verify_invoice(invoice).total == invoice.total
    with tenant_scope(story.tenant.pk):
        for each in commitment_adjustments.commitment_usage(story.tenant.pk, invoice.period, "EUR"):
            seen = commitment_coverage.coverage_in_month(each.commitment, invoice.period, until=NOW)
            assert seen is not None
            assert (seen.committed, seen.covered, seen.unused) == (
                each.committed,
                sum(each.uses.values()),
                each.unused,
            )
