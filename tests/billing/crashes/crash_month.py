"""Month with one tenant for each case of an invoice run.

Price changes within the month, taxes, expiring grants, a balance, a budget with holds, wallets with and without
sufficient funds, reclaimed spot leases, late usage, and leases that run across the end of the month.
"""

from datetime import datetime, timedelta

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.funds.accounts import account_terms
from billing.services.funds.budgets import budget_settings
from billing.services.funds.costs.hold_context import open_lease_hold
from billing.services.funds.wallets import prepaid_holds
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection, payment_creation
from billing.services.payments.topups import topup_collection as topping
from billing.services.payments.topups import topup_creation as topups
from billing.services.rating import lease_rating
from broker.models import Lease, Offering
from ports import outbox, payments
from tenants.models import Project, Tenant
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import (
    EURO,
    HOUR,
    LONG_AGO,
    OPERATOR,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, PERSON, set_billing_details, set_tax_rate

BEFORE = utc("2026-10-01 12:30:00")  # September is over everywhere
NOW = utc("2026-11-01 12:00:00")  # and October
AGAIN = NOW + timedelta(minutes=10)  # when the beat comes the next time
LAST_DAY = utc("2026-10-31 20:00:00")


def create_month() -> None:
    """Create all tenants and their usage; committed unless a transaction is open."""
    with payments.using_gateway(SimulatedGateway()), outbox.captured(lambda *_: None):
        set_tax_rate("DE", 19)
        set_tax_rate("FR", 20)
        slices, spot = create_priced_offering(EURO), create_priced_offering(36 * EURO, price_class="spot")
        for offering, day, price in (
            (slices, 11, 2 * EURO + 7),
            (slices, 21, EURO + 1),
            (spot, 16, 30 * EURO),
        ):
            set_price(offering, price, since=utc(f"2026-10-{day} 07:30:00"))
        _credited(slices)
        _settled_from_its_balance(slices)
        _reclaimed_spot(spot)
        _held_in_budget(slices)
        _prepaid(slices, cents=3000)
        _prepaid(slices, cents=100)
        _late(slices, spot)
        _still_running(slices, spot)


def _credited(slices: Offering) -> None:
    """Create two projects with domestic tax and four grants of different scopes."""
    tenant, root = create_customer("Europe/Berlin")
    with tenant_scope(tenant.pk):
        child = projects.create(name="design", parent=root, actor=SYSTEM, now=LONG_AGO)
    set_billing_details(tenant, LUMEN)
    create_grant(tenant, 5000, project=child, now=BEFORE)
    create_grant(tenant, 2000, priority=1, expires_at=utc("2026-11-01 11:00:00"), now=BEFORE)
    create_grant(tenant, 900, priority=2, expires_at=utc("2026-10-20 12:00:00"), now=BEFORE)
    create_grant(tenant, 7, offering=slices, now=BEFORE)
    for n, project in enumerate((root, child, child, root)):
        add_ended_lease(project, slices, utc(f"2026-10-{10 + 5 * n} 22:00:00"), 20 * HOUR + n, quantity=1 + n)


def _settled_from_its_balance(slices: Offering) -> None:
    """Create a foreign business whose September credit note reduces its October invoice."""
    tenant, root = create_customer("Asia/Kolkata")
    set_billing_details(tenant, ATELIER)
    add_ended_lease(root, slices, utc("2026-09-12 00:00:00"), 9 * HOUR)
    invoice = _september(tenant)
    with tenant_scope(tenant.pk):
        payment = payment_creation.open_payment(invoice, actor=OPERATOR, now=BEFORE)
    payment_collection.PAYMENTS.collect(payment.pk, tenant.pk, now=BEFORE)
    issue_note(invoice, {1: 300}, now=BEFORE)
    add_ended_lease(root, slices, utc("2026-10-10 00:00:00"), 60 * HOUR)


def _reclaimed_spot(spot: Offering) -> None:
    """A consumer with spot leases reclaimed within two minutes, later, and not at all."""
    _, root = create_customer("Australia/Lord_Howe")
    set_billing_details(root.tenant, PERSON)
    for day, seconds in ((4, 40), (9, 4000), (17, 119)):
        start = utc(f"2026-10-{day:02} 14:59:30")
        end = start + timedelta(seconds=seconds)
        steps = [(start, S.REQUESTED), (start, S.ACTIVE), (start + timedelta(seconds=31), S.ACTIVE)]
        add_lease_history(root, spot, [*steps, (end, S.RELEASING), (end, S.RELEASED)], taken=3)
    add_ended_lease(root, spot, utc("2026-10-22 00:00:00"), 77)


def _held_in_budget(slices: Offering) -> None:
    tenant, root = create_customer("Asia/Kathmandu")
    with tenant_scope(tenant.pk):
        budget_settings.set_budget(project=root, limit_minor=50_000, actor=OPERATOR, now=BEFORE)
    add_ended_lease(root, slices, utc("2026-10-15 00:00:00"), 5 * HOUR)
    _lasting(root, slices, LAST_DAY)


def _prepaid(slices: Offering, *, cents: int) -> None:
    """A prepaid tenant whose lease runs on, covered or ended."""
    tenant, root = create_customer("UTC")
    begun = LAST_DAY + timedelta(hours=2)
    with tenant_scope(tenant.pk):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="new", actor=OPERATOR, now=begun
        )
        topup = topups.open_topup(tenant, minor=cents, actor=OPERATOR, now=begun)
    topping.TOPUPS.collect(topup.pk, tenant.pk, now=begun)
    lease = _lasting(root, slices, begun)
    with tenant_scope(tenant.pk):
        row = Lease.objects.select_related("project__tenant", "offering").get(pk=lease.pk)
        prepaid_holds.extend_cover(open_lease_hold(row, now=begun), now=begun)


def _lasting(project: Project, offering: Offering, begun: datetime) -> Lease:
    """Create a one-week lease that has been active since `begun`."""
    lease = add_running_lease(project, offering, begun)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(active_at=begun, max_duration_s=168 * HOUR)
    return lease


def _late(slices: Offering, spot: Offering) -> None:
    """Invoice September before the last of its usage is reported."""
    tenant, root = create_customer("America/St_Johns")
    add_ended_lease(root, slices, utc("2026-09-03 00:00:00"), HOUR)
    _september(tenant)
    for offering in (slices, spot):
        add_ended_lease(root, offering, utc("2026-09-30 23:00:00"), 7 * HOUR)


def _still_running(slices: Offering, spot: Offering) -> None:
    """Create leases that still run, one of them at a quoted price."""
    _, root = create_customer("Africa/Casablanca")
    quoted = add_running_lease(root, slices, utc("2026-10-19 00:00:00"), quantity=2)
    add_quote(quoted, slices.price_versions.order_by("valid").first())
    _lasting(root, spot, LAST_DAY)
    add_lease_history(root, slices, [(LAST_DAY, S.REQUESTED), (LAST_DAY, S.QUEUED)])


def _september(tenant: Tenant) -> Invoice:
    lease_rating.rate_tenant_leases(tenant, now=BEFORE)
    invoice = close_month.close_period(tenant, "2026-09", now=BEFORE)
    assert invoice is not None
    return invoice
