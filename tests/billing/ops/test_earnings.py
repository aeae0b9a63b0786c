"""What the fleet earns is what rating will charge, to the last unit."""

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Sum

from billing.models import PriceVersion, RatedCharge
from billing.services import conservation, earnings, rating
from broker.models import Node, NodeState
from broker.services.fleet import cards, hours
from broker.services.fleet.uses import SCALE, Use
from tenants.models import Tenant
from tenants.services.walls import as_staff, as_sweep, as_tenant
from tests import world
from tests.world import Home, Life

pytestmark = pytest.mark.django_db


def between(life: Life, seconds: int) -> dict[str, int]:
    with as_staff():
        return earnings.over((life.now - timedelta(seconds=seconds), life.now))[0]


def test_earning_now_adds_up_every_active_slice_by_currency(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("1g.10gb"), quantity=3)
    life.ask(kestrel, world.offering("card"))
    with as_staff():
        assert earnings.now_per_hour(now=life.now) == {"EUR": 3 * 400_000_000}


def test_a_lease_whose_currency_has_no_price_earns_nothing(life: Life, kestrel: Home) -> None:
    tern = world.home("Tern")
    with as_tenant(tern.tenant.pk):
        Tenant.objects.filter(pk=tern.tenant.pk).update(currency="USD")
    lease = life.lease(tern, world.offering("1g.10gb"))
    with as_staff():
        assert earnings.now_per_hour(now=life.now) == {}
        assert earnings.of_leases([lease.pk], now=life.now) == {}


def test_each_lease_is_told_its_own_price(life: Life, kestrel: Home) -> None:
    one, whole = (life.lease(kestrel, world.offering(profile)) for profile in ("1g.10gb", "card"))
    with as_staff():
        assert earnings.of_leases([one.pk, whole.pk], now=life.now) == {
            one.pk: (400_000_000, "EUR"),
            whole.pk: (2_800_000_000, "EUR"),
        }


def test_what_was_stopped_has_earned_all_the_same(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"), volume=life.volume(kestrel).pk)
    life.run(600)
    earned = between(life, 600)
    life.stop(lease, kestrel)
    life.run(60)
    assert earned["EUR"] <= between(life, 7200)["EUR"]


def test_what_ended_earned_exactly_what_rating_charges(life: Life, kestrel: Home) -> None:
    offering = world.offering("2g.20gb")
    lease = life.lease(kestrel, offering, quantity=2)
    life.run(1234)
    old = PriceVersion.objects.get(offering=offering)
    PriceVersion.objects.filter(pk=old.pk).update(valid=DateTimeTZRange(old.valid.lower, life.now))
    PriceVersion.objects.create(
        rate_card=old.rate_card,
        offering=offering,
        currency="EUR",
        valid=DateTimeTZRange(life.now, None),
        nano_per_hour=999_999_999,
        created_at=life.now,
    )
    life.run(777)
    life.release(lease)
    life.run(60)
    rating.rate(now=life.now)
    with as_tenant(kestrel.tenant.pk):
        charged = RatedCharge.objects.aggregate(sum=Sum("exact_num"))["sum"]
    assert between(life, 10_000) == {"EUR": int(charged)}


def test_a_lease_that_goes_on_earns_until_now_and_only_inside_the_span(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("1g.10gb"))
    life.run(3000)
    assert between(life, 100) == {"EUR": 100 * 400_000_000}
    with as_staff():
        long_ago = (life.now - timedelta(days=9), life.now - timedelta(days=8))
        just_now = (life.now - timedelta(seconds=10), life.now)
        assert earnings.over(long_ago, just_now) == [{}, {"EUR": 10 * 400_000_000}]


def test_the_hours_of_operators_are_those_of_the_conservation_table(life: Life, kestrel: Home) -> None:
    first, begun = life.lease(kestrel, world.offering("3g.40gb")), life.now - timedelta(seconds=30)
    life.run(700)
    life.lease(kestrel, world.offering("card", price_class="spot"))
    life.release(first)
    life.run(100)
    world.set_node(Node.objects.get(), NodeState.DRAINING, life)
    life.run(250)
    with as_staff():
        seen = hours.since(begun, cards.load(), now=life.now)
    with as_sweep():
        kept = conservation.over(first=begun, last=life.now)
    pairs = {
        "sold": (Use.SOLD, Use.SPOT),
        "idle": (Use.FREE,),
        "fragmented": (Use.FRAGMENTED,),
        "reserved": (Use.RESERVED,),
        "unhealthy": (Use.UNHEALTHY, Use.MAINTENANCE),
    }
    assert {kind: sum(seen.by_use[use] for use in uses) for kind, uses in pairs.items()} == {
        kind: kept.cards(kind) * SCALE for kind in pairs
    }
    assert seen.explained == seen.total == kept.cards("total") * SCALE
