"""Trial credit, currencies, and tenants that operators create."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from billing.domain.approvals import Approver, LaunchLimits
from billing.models import AccountTerms, AutoTopUp, Budget, Grant, PriceVersion, TokenCap
from billing.services.approvals import approval_limits
from billing.services.funds.budgets import budget_settings
from billing.services.new_tenants import tenant_creation, tenant_currency
from billing.services.new_tenants.tenant_creation import WantedTenant
from broker.models import Offering
from tenants.domain.roles import Role
from tenants.models import Invitation, Member, Project, QuotaKind, Tenant, User
from tenants.services import quotas, tokens
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tenants.services.tenants import CurrencyFixed
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, LONG_AGO, OPERATOR, create_priced_offering, set_price
from tests.billing.new_tenants.founders import found, launch, person
from tests.simulation import NOW

pytestmark = pytest.mark.django_db


def credits(tenant: Tenant) -> list[tuple[int, str]]:
    with tenant_scope(tenant.pk):
        return list(Grant.objects.values_list("minor", "currency"))


def test_trial_credit_is_given_once_per_person(ada: User, settings: Any) -> None:
    settings.TRIAL_CREDIT, settings.NEW_TENANTS_PER_PERSON = {"EUR": "25"}, 9
    assert credits(found(ada)) == [(2500, "EUR")]
    assert credits(found(ada, "Second")) == []
    assert credits(found(person("ada+again@example.org"), "Third")) == []


def test_trial_credit_launches_without_a_card(ada: User, small: Offering, settings: Any) -> None:
    settings.TRIAL_CREDIT = {"EUR": "25"}
    tenant = found(ada)
    assert launch(tenant, ada, small).state == "queued"
    with tenant_scope(tenant.pk):
        grant = Grant.objects.get()
    assert grant.reason == "Trial credit"
    assert grant.expires_at is not None


def test_no_trial_credit_in_a_currency_without_some(ada: User, settings: Any) -> None:
    settings.TRIAL_CREDIT = {"USD": "25"}
    assert credits(found(ada)) == []


def test_a_new_tenant_chooses_among_the_currencies_with_prices(ada: User, settings: Any) -> None:
    create_priced_offering(currency="USD")
    settings.NEW_TENANTS_PER_PERSON = 2
    assert found(ada, currency="USD").currency == "USD"
    with pytest.raises(InvalidValue):
        found(ada, "Second", currency="GBP")


def set_currency(tenant: Tenant, currency: str) -> Tenant:
    return tenant_currency.set_currency(tenant, currency=currency, actor=OPERATOR, now=NOW)


def test_operators_change_a_currency_until_something_is_in_it(ada: User, small: Offering) -> None:
    tenant = found(ada)
    tenant = set_currency(tenant, "USD")
    assert tenant.currency == "USD"
    assert not PriceVersion.objects.filter(currency="USD").exists()
    tenant = set_currency(tenant, "EUR")
    with pytest.raises(InvalidValue):
        set_currency(tenant, "XXX")
    with tenant_scope(tenant.pk):
        create_grant(tenant, 10_000, now=NOW)
    with pytest.raises(CurrencyFixed) as refused:
        set_currency(tenant, "USD")
    assert refused.value.detail.endswith("already has 1 booking, 1 credit in EUR.")
    assert "another tenant" in refused.value.fix.text


def test_unused_budgets_keep_their_number_in_the_new_currency(ada: User) -> None:
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        root = Project.objects.get(tenant=tenant)
        budget_settings.set_budget(project=root, limit_minor=10_050, actor=OPERATOR, now=NOW)
    set_currency(tenant, "JPY")
    with tenant_scope(tenant.pk):
        budget = Budget.objects.get()
    assert (budget.currency, budget.limit_minor) == ("JPY", 100)
    with tenant_scope(tenant.pk):
        tenant.refresh_from_db()
    set_currency(tenant, "USD")
    with tenant_scope(tenant.pk):
        budget.refresh_from_db()
    assert (budget.currency, budget.limit_minor) == ("USD", 10_000)


def test_a_lease_that_waits_stands_in_the_way_until_it_is_released(ada: User, small: Offering, settings: Any) -> None:
    settings.RELEASE_NEW_TENANTS = True
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        root = Project.objects.get(tenant=tenant)
        budget_settings.set_budget(project=root, limit_minor=100_000, actor=OPERATOR, now=NOW)
    lease = launch(tenant, ada, small)
    with pytest.raises(CurrencyFixed, match="1 lease, 1 used budget in EUR") as refused:
        set_currency(tenant, "USD")
    assert refused.value.fix.text.startswith("Release the leases first")
    assert lease.pk


def set_cost_limit(tenant: Tenant) -> None:
    approval_limits.set_limits(tenant, LaunchLimits(Approver.OPERATOR, 50_000, None, None), actor=OPERATOR, now=NOW)


def set_automatic_topup(tenant: Tenant) -> None:
    AutoTopUp.objects.create(tenant=tenant, threshold_minor=1000, minor=5000, set_at=NOW)


def create_capped_token(tenant: Tenant) -> None:
    ends = NOW + timedelta(days=1)
    by: dict[str, Any] = {"actor": OPERATOR, "now": NOW}
    owner = Member.objects.get(tenant=tenant).user_id
    token, _ = tokens.issue(tenant=tenant, name="ci", scopes=["leases:write"], expires_at=ends, user_id=owner, **by)
    TokenCap.objects.create(tenant=tenant, token=token, currency=tenant.currency, total_minor=500, set_at=NOW)


def set_burn_quota(tenant: Tenant) -> None:
    root = Project.objects.get(tenant=tenant)
    quotas.set_limit(project=root, kind=QuotaKind.BURN, limit=50 * EURO, actor=OPERATOR, now=NOW)


@pytest.mark.parametrize("keep", [set_cost_limit, set_automatic_topup, create_capped_token, set_burn_quota])
def test_a_currency_in_which_an_amount_is_kept_stays(
    ada: User, small: Offering, keep: Callable[[Tenant], None]
) -> None:
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        keep(tenant)
    with pytest.raises(CurrencyFixed):  # else €500.00 would become ¥50,000
        set_currency(tenant, "JPY")


def test_a_currency_with_a_lease_stays(ada: User, small: Offering, settings: Any) -> None:
    settings.RELEASE_NEW_TENANTS = True
    tenant = found(ada)
    set_price(small, EURO, since=LONG_AGO, currency="USD")
    launch(tenant, ada, small)
    with pytest.raises(CurrencyFixed):
        set_currency(tenant, "USD")


def test_operators_create_a_tenant_and_invite_its_owner(db: None, letters: list[tuple[str, str]]) -> None:
    tenant, invitation = tenant_creation.create_for_owner(
        WantedTenant("Kestrel Bio", "DE", "USD", "Europe/Berlin"),
        owner_email="Mira@kestrel.example",
        payment="prepaid",
        actor=OPERATOR,
        now=NOW,
    )
    assert (tenant.currency, tenant.time_zone, tenant.is_new) == ("USD", "Europe/Berlin", False)
    with tenant_scope(tenant.pk):
        assert AccountTerms.objects.get().payment == "prepaid"
        assert Invitation.objects.get(pk=invitation.pk).role == Role.OWNER
    assert invitation.email == "mira@kestrel.example"
