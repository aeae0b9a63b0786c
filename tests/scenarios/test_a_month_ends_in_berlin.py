"""A lease across the end of November in Berlin is on one invoice per second."""

from datetime import UTC, datetime, timedelta

from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.services.leases.lifecycle.extension import extend_lease
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.histories import create_customer, invoice_lines, invoices_of, set_price
from tests.simulation import Simulation, TenantContext, create_gpus, offering, reload_lease

HOUR, EURO = 3600, 10**9
EVENING = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)  # 23:00 in Berlin
MIDNIGHT = EVENING + timedelta(hours=1)


def test_a_lease_across_the_end_of_a_month_in_berlin_is_split_between_two_invoices(sim: Simulation) -> None:
    sim.clock.at = EVENING
    create_gpus(1)
    gpu = offering("whole-gpu")
    set_price(gpu, 36 * EURO // 10, since=EVENING - timedelta(days=60))  # a tenth of a cent a second
    tenant, project = create_customer("Europe/Berlin")
    berlin = TenantContext(tenant, project, Actor("user", "usr_berlin", "mira@berlin.example"))

    # 23:00 An hour is asked for, then half an hour more: the last hour of November is nearly all of it.
    lease = reload_lease(sim.create_lease(berlin, gpu, max_duration_s=HOUR))
    assert lease.active_at
    november = int((MIDNIGHT - lease.active_at).total_seconds())
    assert HOUR - 30 < november < HOUR
    with tenant_scope(tenant.pk):
        extend_lease(lease, more_s=HOUR // 2, actor=berlin.actor, now=sim.now)

    # 00:04 Too early to close: somebody may still report what happened before midnight.
    sim.run((MIDNIGHT - sim.now).total_seconds() + 240)
    sim.sweep()
    lease_rating.rate_all_leases(now=sim.now)
    assert close_month.close_due_months(now=sim.now).months == 0

    # 00:06 November is closed while the lease runs on. Its invoice has the seconds until midnight, rounded once.
    sim.run(120)
    sim.sweep()
    assert close_month.close_due_months(now=sim.now).months == 1
    (first,) = [each for each in invoices_of(tenant) if each.status == "finalized"]
    (line,) = invoice_lines(first)
    assert (line.unit_seconds, line.minor) == (november, (november + 5) // 10)

    # 00:30 It reaches its end. What is left stands on December, and together it is the hour and a half.
    sim.run(HOUR)
    assert reload_lease(lease).state == "released"
    lease_rating.rate_all_leases(now=sim.now)
    close_month.close_due_months(now=datetime(2027, 1, 2, tzinfo=UTC))
    (untouched,), (rest,) = (invoice_lines(each) for each in invoices_of(tenant) if each.status == "finalized")
    assert untouched == line
    assert line.unit_seconds + rest.unit_seconds == HOUR + HOUR // 2
