"""Every page states the same amount for the same thing, whatever a tenant has agreed on."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from billing.gateways.simulated import SimulatedGateway
from billing.models import AccountStatus, Invoice
from billing.services.agreements import commitments
from billing.services.catalogue import tenant_prices
from billing.services.funds.accounts import account_terms
from billing.services.invoicing import metering
from billing.services.new_tenants import tenant_currency
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from config.env import EnvironmentSettings
from ports import payments
from tenants.domain.roles import Role
from tenants.models import User
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import create_discount
from tests.billing.budgets.budget_setup import create_budget
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, set_billing_details, set_tax_rate
from tests.billing.topups.topup_setup import process_topup, request_topup
from tests.simulation import OPERATOR, offering
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.compared_amounts import AMOUNT, COMPARED, PAGE, compared_amounts_page
from tests.web.portal.signed_in_user import EURO, PortalSession, price_all_offerings, visible_text
from tests.web.portal.test_amounts_agree import launch

pytestmark = pytest.mark.django_db
PRICE_COLUMNS = {"on_demand": "", "spot": r"[€$£¥][\d.,]+/h (?:[\d.]+ )?"}


def plain(portal: PortalSession, settings: Any) -> None:
    """Leave everything as it is."""


def own_price(portal: PortalSession, settings: Any) -> None:
    """Give the tenant a price of its own."""
    terms = {"nano_per_hour": 21 * EURO // 10, "since": portal.sim.now, "now": portal.sim.now}
    tenant_prices.set_tenant_price(tenant=portal.owner.tenant, offering=offering("3g.40gb"), actor=OPERATOR, **terms)


def tax(portal: PortalSession, settings: Any) -> None:
    """Let the tenant owe VAT."""
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_billing_details(portal.owner.tenant, replace(ATELIER, country="DE", vat_id=""))


def commitment(portal: PortalSession, settings: Any) -> None:
    """Let the tenant have committed to a unit at less than the list price."""
    commitments.create_commitment(
        portal.owner.tenant,
        offering("3g.40gb"),
        units=1,
        nano_per_hour=18 * EURO // 10,
        since=portal.sim.now,
        until=None,
        actor=OPERATOR,
        now=portal.sim.now,
    )


def discount(portal: PortalSession, settings: Any) -> None:
    """Let the tenant pay a tenth less."""
    create_discount(portal.owner.tenant, percent_bp=1000)


def prepaid(portal: PortalSession, settings: Any) -> None:
    """Let the tenant pay from a wallet that has money."""
    account_terms.set_account_terms(
        portal.owner.tenant,
        payment="prepaid",
        account_status=AccountStatus.GOOD,
        why="new",
        actor=OPERATOR,
        now=portal.sim.now,
    )
    with payments.using_gateway(SimulatedGateway()):
        process_topup(request_topup(portal.owner, 90_000, now=portal.sim.now), now=portal.sim.now)


def dollars_in_kolkata(portal: PortalSession, settings: Any) -> None:
    """Bill in another currency and time zone."""
    in_currency(portal, "USD", "Asia/Kolkata")


def yen_in_tokyo(portal: PortalSession, settings: Any) -> None:
    """Bill in a currency without decimals."""
    in_currency(portal, "JPY", "Asia/Tokyo", nano=150 * EURO)


def in_currency(portal: PortalSession, currency: str, time_zone: str, nano: int = EURO) -> None:
    price_all_offerings(nano, currency=currency)
    tenant = portal.owner.tenant
    tenant_currency.set_currency(tenant, currency=currency, actor=OPERATOR, now=portal.sim.now)
    portal.change_time_zone(time_zone)
    tenant.currency = currency


def spot(portal: PortalSession, settings: Any) -> None:
    """Launch spot leases instead of on-demand ones."""


def volume(portal: PortalSession, settings: Any) -> None:
    """Let the tenant keep data."""
    portal.sim.create_volume(portal.owner, "datasets", size_gib=150)


CASES: tuple[Callable[[PortalSession, Any], None], ...] = (
    plain, own_price, tax, commitment, discount, prepaid, dollars_in_kolkata, yen_in_tokyo, spot, volume,
)  # fmt: skip


@pytest.fixture
def seed(portal: PortalSession, settings: Any) -> Callable[..., dict[str, str]]:
    """Return a function that seeds a case; leases run, ended and wait."""
    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    settings.OPERATORS_REQUIRE_MFA = False

    def run(case: Callable[[PortalSession, Any], None], *, metered: bool) -> dict[str, str]:
        case(portal, settings)
        class_ = "spot" if case is spot else "on_demand"
        create_budget(portal.owner, 2_000_000, portal.sim)
        what = offering("3g.40gb", price_class=class_)
        chosen = {"offering": what.pk, "class": class_}
        launch(portal, "long", lasts="200 h", **chosen)
        short = launch(portal, "short", **chosen)
        portal.sim.run(1800)
        metering.run_metering(now=portal.sim.now)
        ended = launch(portal, "ended", **chosen)
        portal.sim.run(1234)
        portal.sim.release_lease(ended)
        portal.sim.run(1000)
        portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, name="waits")
        if metered:
            metering.run_metering(now=portal.sim.now)
        with tenant_scope(portal.owner.tenant.pk):
            draft = Invoice.objects.first()
            assert Lease.objects.get(pk=short.pk).state == "active"
        return {
            "lease": short.pk,
            "ended": ended.pk,
            "offering": what.pk,
            "class_": class_,
            "tenant": portal.owner.tenant.pk,
            "draft": draft.pk if draft else "",
            "column": PRICE_COLUMNS[class_],
        }

    return run


@pytest.mark.parametrize("metered", [False, True], ids=["before metering", "after metering"])
@pytest.mark.parametrize("case", CASES, ids=lambda each: each.__name__)
def test_every_place_states_the_same_amount(
    portal: PortalSession,
    seed: Callable[..., dict[str, str]],
    case: Callable[[PortalSession, Any], None],
    metered: bool,
) -> None:
    ids = seed(case, metered=metered)
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    api = ApiClient(portal.owner.token(Role.OWNER, now=portal.sim.now))
    read = dict[tuple[str, str], str]()

    def fetch(visitor: str, address: str) -> str:
        if (visitor, address) not in read:
            if visitor == "api":
                read[visitor, address] = api.send("GET", address.removeprefix("/api/v1/")).content.decode()
            else:
                answer: Any = (operator if visitor == "operator" else portal.client).get(address)
                assert answer.status_code == 200, address
                read[visitor, address] = visible_text(answer)
        return read[visitor, address]

    places = 0 if case is yen_in_tokyo else 2
    differing = {}
    for name, where in COMPARED.items():
        if name == "draft invoice" and not ids["draft"]:
            continue
        stated = {each.place: each.read(fetch, ids, places) for each in where}
        if len(set(stated.values())) > 1:
            differing[name] = {place: str(amount) for place, amount in stated.items()}
        elif name not in ("balance", "reserved in a budget"):
            assert Decimal(0) < next(iter(stated.values())), name
    assert differing == {}


@pytest.mark.parametrize("metered", [False, True], ids=["before metering", "after metering"])
def test_the_leases_of_a_budget_add_up_to_what_it_reserves(
    portal: PortalSession, seed: Callable[..., dict[str, str]], metered: bool
) -> None:
    seed(plain, metered=metered)
    page = portal.read("/budgets/")
    whole = re.search(f"spent, {AMOUNT} reserved", page)
    rows = re.findall(f"Kestrel {AMOUNT} reserved (?:Active|Queued|Released)", page)
    assert whole
    assert len(rows) == (3 if metered else 4)
    difference = Decimal(whole[1].replace(",", "")) - sum(Decimal(each.replace(",", "")) for each in rows)
    assert abs(difference) <= Decimal("0.01") * len(rows), "each row is rounded"


def test_the_list_of_compared_amounts_is_current() -> None:
    if os.environ.get("GOLDEN") == "write":
        PAGE.write_text(compared_amounts_page())
    assert PAGE.read_text() == compared_amounts_page()
