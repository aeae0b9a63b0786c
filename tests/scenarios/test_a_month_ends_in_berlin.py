"""A lease runs across the end of November, which in Berlin comes an hour before UTC's: every second on one invoice."""

from datetime import UTC, datetime, timedelta

from billing.services import closing, rating
from broker.services.leases.growing import extend
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.billing.histories import customer, invoices, lines, reprice
from tests.world import Home, Life, cards, fresh, offering

HOUR, EURO = 3600, 10**9
EVENING = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)  # 23:00 in Berlin
MIDNIGHT = EVENING + timedelta(hours=1)


def test_a_month_ends_in_berlin(life: Life) -> None:
    life.clock.at = EVENING
    cards(1)
    card = offering("card")
    reprice(card, 36 * EURO // 10, since=EVENING - timedelta(days=60))  # a tenth of a cent a second
    tenant, project = customer("Europe/Berlin")
    berlin = Home(tenant, project, Actor("user", "usr_berlin", "mira@berlin.example"))

    # 23:00 An hour is asked for, then half an hour more: the last hour of November is nearly all of it.
    lease = fresh(life.lease(berlin, card, max_duration_s=HOUR))
    assert lease.active_at
    november = int((MIDNIGHT - lease.active_at).total_seconds())
    assert HOUR - 30 < november < HOUR
    with as_tenant(tenant.pk):
        extend(lease, more_s=HOUR // 2, actor=berlin.actor, now=life.now)

    # 00:04 Too early to close: somebody may still report what happened before midnight.
    life.run((MIDNIGHT - life.now).total_seconds() + 240)
    life.sweep()
    rating.rate(now=life.now)
    assert closing.close_due(now=life.now).months == 0

    # 00:06 November is closed while the lease runs on. Its invoice has the seconds until midnight, rounded once.
    life.run(120)
    life.sweep()
    assert closing.close_due(now=life.now).months == 1
    (first,) = [each for each in invoices(tenant) if each.status == "finalized"]
    (line,) = lines(first)
    assert (line.unit_seconds, line.minor) == (november, (november + 5) // 10)

    # 00:30 It reaches its end. What is left stands on December, and together it is the hour and a half.
    life.run(HOUR)
    assert fresh(lease).state == "released"
    rating.rate(now=life.now)
    closing.close_due(now=datetime(2027, 1, 2, tzinfo=UTC))
    (untouched,), (rest,) = (lines(each) for each in invoices(tenant) if each.status == "finalized")
    assert untouched == line
    assert line.unit_seconds + rest.unit_seconds == HOUR + HOUR // 2
