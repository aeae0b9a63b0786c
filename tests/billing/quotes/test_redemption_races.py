"""Concurrent redemptions of one quote."""

from threading import Barrier
from typing import Any

from billing.models import Quote
from billing.services.catalogue import price_list
from billing.services.quotes import quote_signatures
from billing.services.quotes.quote_redemption import QuoteUsed
from broker.models import Lease
from config.env import EnvironmentSettings
from tenants.services.rls import staff_scope
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.billing.rating.test_rating_races import together
from tests.database import OwnDatabase
from tests.simulation import create_fleet, create_tenant, offering, simulate

RACERS = 8


def test_one_of_many_concurrent_requests_redeems_a_quote(own_database: OwnDatabase, settings: Any) -> None:
    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    create_fleet()
    what = offering("1g.10gb")
    set_price(what, EURO, since=LONG_AGO)
    kestrel, start, found = create_tenant("Kestrel"), Barrier(RACERS), list[str]()
    with simulate() as sim:
        price = price_list.price_of(what, currency="EUR", moment=sim.now)
        quote = quote_signatures.make_offer(
            price, project=kestrel.project, quantity=1, max_duration_s=3600, now=sim.now
        )

        def race() -> None:
            start.wait(30)
            try:
                sim.request_lease(kestrel, what, quote=quote.sealed)
            except QuoteUsed:
                found.append("used")
            else:
                found.append("got it")

        assert together(*[race] * RACERS) == []
    assert sorted(found) == ["got it", *["used"] * (RACERS - 1)]
    with staff_scope():
        [row], [lease] = Quote.objects.all(), Lease.objects.all()
    assert (row.pk, row.lease_id, lease.quote_id) == (quote.id, lease.pk, quote.id)
