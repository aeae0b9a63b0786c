"""A month with all that an invoice run may have to do, written down before the run: a tenant for each kind of it.

Prices that change in the middle, taxes, credit that ends, a balance, a budget with holds, wallets that suffice and that
do not, starts that were taken back, seconds that come late, and leases that run on across the border of the month.
"""

from datetime import datetime, timedelta

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services import closing, rating
from billing.services.funds import budgets
from billing.services.funds.looking import look_at
from billing.services.payments import collecting, opening
from billing.services.topups import collecting as topping
from billing.services.topups import opening as topups
from billing.services.wallets import covering, terms
from broker.models import Lease, Offering
from ports import doorbell, payments
from tenants.models import Project, Tenant
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.grants.gifts import give
from tests.billing.histories import (
    EURO,
    HOUR,
    LONG_AGO,
    OPERATOR,
    S,
    at,
    customer,
    lived,
    promise,
    ran,
    reprice,
    runs,
    sold,
)
from tests.billing.tax.papers import ATELIER, LUMEN, PERSON, taxed, told

BEFORE = at("2026-10-01 12:30:00")  # September is over everywhere
NOW = at("2026-11-01 12:00:00")  # and October
AGAIN = NOW + timedelta(minutes=10)  # when the beat comes the next time
LAST_DAY = at("2026-10-31 20:00:00")


def build() -> None:
    """Write all of it; committed, where nobody opened a transaction around."""
    with payments.through(SimulatedGateway()), doorbell.heard_by(lambda *_: None):
        taxed("DE", 19)
        taxed("FR", 20)
        slices, spot = sold(EURO), sold(36 * EURO, price_class="spot")
        for offering, day, price in (
            (slices, 11, 2 * EURO + 7),
            (slices, 21, EURO + 1),
            (spot, 16, 30 * EURO),
        ):
            reprice(offering, price, since=at(f"2026-10-{day} 07:30:00"))
        _credited(slices)
        _settled_from_its_balance(slices)
        _taken_back(spot)
        _within_a_budget(slices)
        _beforehand(slices, cents=3000)
        _beforehand(slices, cents=100)
        _late(slices, spot)
        _running_on(slices, spot)


def _credited(slices: Offering) -> None:
    """Two projects, tax of their country, and four grants that pay for different parts."""
    tenant, root = customer("Europe/Berlin")
    with as_tenant(tenant.pk):
        child = projects.create(name="design", parent=root, actor=SYSTEM, now=LONG_AGO)
    told(tenant, LUMEN)
    give(tenant, 5000, project=child, now=BEFORE)
    give(tenant, 2000, priority=1, expires_at=at("2026-11-01 11:00:00"), now=BEFORE)
    give(tenant, 900, priority=2, expires_at=at("2026-10-20 12:00:00"), now=BEFORE)
    give(tenant, 7, offering=slices, now=BEFORE)
    for n, project in enumerate((root, child, child, root)):
        ran(project, slices, at(f"2026-10-{10 + 5 * n} 22:00:00"), 20 * HOUR + n, quantity=1 + n)


def _settled_from_its_balance(slices: Offering) -> None:
    """Business of another country; its September was paid and given back in part, which pays for October."""
    tenant, root = customer("Asia/Kolkata")
    told(tenant, ATELIER)
    ran(root, slices, at("2026-09-12 00:00:00"), 9 * HOUR)
    invoice = _september(tenant)
    with as_tenant(tenant.pk):
        payment = opening.pay(invoice, actor=OPERATOR, now=BEFORE)
    collecting.collect(payment.pk, tenant.pk, now=BEFORE)
    credit(invoice, {1: 300}, now=BEFORE)
    ran(root, slices, at("2026-10-10 00:00:00"), 60 * HOUR)


def _taken_back(spot: Offering) -> None:
    """Somebody without a VAT number, whose spot leases were taken back: at once, late, and never."""
    _, root = customer("Australia/Lord_Howe")
    told(root.tenant, PERSON)
    for day, seconds in ((4, 40), (9, 4000), (17, 119)):
        start = at(f"2026-10-{day:02} 14:59:30")
        end = start + timedelta(seconds=seconds)
        steps = [(start, S.REQUESTED), (start, S.ACTIVE), (start + timedelta(seconds=31), S.ACTIVE)]
        lived(root, spot, [*steps, (end, S.RELEASING), (end, S.RELEASED)], taken=3)
    ran(root, spot, at("2026-10-22 00:00:00"), 77)


def _within_a_budget(slices: Offering) -> None:
    tenant, root = customer("Asia/Kathmandu")
    with as_tenant(tenant.pk):
        budgets.set_limit(project=root, limit_minor=50_000, actor=OPERATOR, now=BEFORE)
    ran(root, slices, at("2026-10-15 00:00:00"), 5 * HOUR)
    _lasting(root, slices, LAST_DAY)


def _beforehand(slices: Offering, *, cents: int) -> None:
    """Whoever pays beforehand, with a lease that runs on: it is covered, or it is ended and what it overran is ours."""
    tenant, root = customer("UTC")
    begun = LAST_DAY + timedelta(hours=2)
    with as_tenant(tenant.pk):
        terms.set_terms(tenant, payment="prepaid", standing="good", why="new", actor=OPERATOR, now=begun)
        topup = topups.top_up(tenant, minor=cents, actor=OPERATOR, now=begun)
    topping.collect(topup.pk, tenant.pk, now=begun)
    lease = _lasting(root, slices, begun)
    with as_tenant(tenant.pk):
        row = Lease.objects.select_related("project__tenant", "offering").get(pk=lease.pk)
        covering.extend(look_at(row, now=begun), now=begun)


def _lasting(project: Project, offering: Offering, begun: datetime) -> Lease:
    """Write a lease that was asked for for a week, and is active since."""
    lease = runs(project, offering, begun)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(active_at=begun, max_duration_s=168 * HOUR)
    return lease


def _late(slices: Offering, spot: Offering) -> None:
    """September was invoiced before a node told of the rest of it."""
    tenant, root = customer("America/St_Johns")
    ran(root, slices, at("2026-09-03 00:00:00"), HOUR)
    _september(tenant)
    for offering in (slices, spot):
        ran(root, offering, at("2026-09-30 23:00:00"), 7 * HOUR)


def _running_on(slices: Offering, spot: Offering) -> None:
    """Leases that nobody stopped, one of them at the price of a quote."""
    _, root = customer("Africa/Casablanca")
    quoted = runs(root, slices, at("2026-10-19 00:00:00"), quantity=2)
    promise(quoted, slices.price_versions.order_by("valid").first())
    _lasting(root, spot, LAST_DAY)
    lived(root, slices, [(LAST_DAY, S.REQUESTED), (LAST_DAY, S.QUEUED)])


def _september(tenant: Tenant) -> Invoice:
    rating.rate_tenant(tenant, now=BEFORE)
    invoice = closing.close_period(tenant, "2026-09", now=BEFORE)
    assert invoice is not None
    return invoice
