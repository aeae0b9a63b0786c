"""Of many who cite one quote at the same moment one gets it, with real commits."""

from threading import Barrier
from typing import Any

from billing.models import Quote
from billing.services import prices, sealing
from billing.services.citing import QuoteUsed
from broker.models import Lease
from config.operator import Operator
from tenants.services.walls import as_staff
from tests.billing.histories import EURO, LONG_AGO, reprice
from tests.billing.services.test_rating_races import together
from tests.database import OwnDatabase
from tests.world import alive, fleet, home, offering

RACERS = 8


def test_of_many_who_cite_a_quote_at_once_one_gets_it(own_database: OwnDatabase, settings: Any) -> None:
    settings.LEASE_GATES = Operator.model_fields["lease_gates"].default
    fleet()
    what = offering("1g.10gb")
    reprice(what, EURO, since=LONG_AGO)
    kestrel, start, told = home("Kestrel"), Barrier(RACERS), list[str]()
    with alive() as life:
        price = prices.of(what, currency="EUR", moment=life.now)
        quote = sealing.offer(price, project=kestrel.project, quantity=1, max_duration_s=3600, now=life.now)

        def race() -> None:
            start.wait(30)
            try:
                life.ask(kestrel, what, quote=quote.sealed)
            except QuoteUsed:
                told.append("used")
            else:
                told.append("got it")

        assert together(*[race] * RACERS) == []
    assert sorted(told) == ["got it", *["used"] * (RACERS - 1)]
    with as_staff():
        [row], [lease] = Quote.objects.all(), Lease.objects.all()
    assert (row.pk, row.lease_id, lease.quote_id) == (quote.id, lease.pk, quote.id)
