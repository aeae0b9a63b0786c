"""New tenants: how many one person has, what they hold, and what releases them."""

from typing import Any

import pytest

from billing.models import AccountTerms, BillingDetails
from billing.services.funds.accounts import account_terms
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from billing.services.new_tenants import tenant_release
from billing.services.new_tenants.new_tenant_gate import CardOrPrepaymentRequired
from billing.services.new_tenants.tenant_release import AlreadyReleased
from broker.models import Offering
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Quota, QuotaKind, Tenant, User
from tenants.services import invitations, members
from tenants.services.errors import QuotaExceeded
from tenants.services.new_tenant_limits import NewTenantLimit
from tenants.services.rls import tenant_scope
from tenants.services.sign_ups import SignUpClosed
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import OPERATOR
from tests.billing.new_tenants.founders import actor_of, found, launch, person
from tests.simulation import NOW
from tests.tenants.tenant_setup import ALL_ROLES

pytestmark = pytest.mark.django_db


def release(tenant: Tenant, payment: str = "invoice") -> None:
    tenant_release.release_tenant(tenant, why="known", actor=OPERATOR, now=NOW, payment=payment)


@pytest.mark.attack("three tenants of one new address that launch six cards for a month")
def test_six_cards_for_a_month_by_one_new_address_are_refused_with_a_fix(h200: Offering) -> None:
    """One new address, three tenants, six whole H200 for 30 days."""
    refusals = []
    tenants = []
    for number in range(3):
        try:
            tenants.append(found(person(f"mallory+{number}@example.org"), f"Shell {number}"))
        except NewTenantLimit as refusal:
            refusals.append(refusal)
    assert (len(tenants), len(refusals)) == (1, 2)
    owner = User.objects.get(email="mallory+0@example.org")
    for quantity in (6, 2, 1):
        with pytest.raises((QuotaExceeded, PaymentRequired)) as refused:
            launch(tenants[0], owner, h200, hours=24 * 30, quantity=quantity)
        refusals.append(refused.value)
    assert all(refusal.fix.text for refusal in refusals)


def test_a_new_tenant_pays_in_advance_until_it_is_released(ada: User, small: Offering) -> None:
    tenant = found(ada)
    with pytest.raises(PaymentRequired):
        launch(tenant, ada, small)
    with tenant_scope(tenant.pk):
        create_grant(tenant, 500, now=NOW)
    assert launch(tenant, ada, small).state == "queued"
    release(tenant)
    assert launch(tenant, ada, small, hours=100).state == "queued"
    with tenant_scope(tenant.pk):
        assert account_terms.terms_of(tenant).payment == "invoice"
        assert "tenant.release" in set(AuditEvent.objects.values_list("action", flat=True))
    with pytest.raises(AlreadyReleased):
        release(tenant)


def test_a_new_tenant_that_pays_by_invoice_needs_a_card(ada: User, small: Offering) -> None:
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        AccountTerms.objects.update(payment="invoice")
    with pytest.raises(CardOrPrepaymentRequired) as refused:
        launch(tenant, ada, small)
    assert "card" in refused.value.fix.text


def test_a_release_raises_only_quotas_that_nobody_has_set(ada: User, settings: Any) -> None:
    settings.NEW_TENANT_QUOTA_UNITS, settings.DEFAULT_TENANT_QUOTA_UNITS = 7, 14
    tenant = found(ada)

    def quotas() -> dict[str, int]:
        with tenant_scope(tenant.pk):
            return dict(Quota.objects.filter(project__parent=None).values_list("kind", "soft_limit"))

    assert quotas() == {QuotaKind.UNITS: 7000, QuotaKind.GPU_SECONDS: 336 * 3_600_000}
    with tenant_scope(tenant.pk):
        Quota.objects.filter(kind=QuotaKind.GPU_SECONDS).update(soft_limit=5, limit=5)
    release(tenant)
    assert quotas() == {QuotaKind.UNITS: 14_000, QuotaKind.GPU_SECONDS: 5}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ada@example.org", "ada+1@example.org"),
        ("ada@example.org", "ADA@Example.org"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("a.da@gmail.com", "ada+x@googlemail.com"),
    ],
)
def test_other_spellings_of_an_address_are_the_same_person(db: None, first: str, second: str) -> None:
    if first == second.lower():
        owner = person(first)
        found(owner)
        with pytest.raises(NewTenantLimit):
            found(owner, "Second")
        return
    found(person(first))
    with pytest.raises(NewTenantLimit) as refused:
        found(person(second), "Second", ip_address="198.51.100.9")
    assert "operators" in refused.value.fix.text


def test_a_network_creates_only_so_many_new_tenants(db: None, settings: Any) -> None:
    settings.NEW_TENANTS_PER_NETWORK = 2
    made = [found(person(f"p{number}@example.org"), ip_address="2001:db8:1:2::" + str(number)) for number in (1, 2)]
    with pytest.raises(NewTenantLimit):
        found(person("p3@example.org"), ip_address="2001:db8:1:2:ffff::3")
    found(person("p4@example.org"), ip_address="2001:db8:1:3::4")
    release(made[0])
    found(person("p5@example.org"), ip_address="2001:db8:1:2::5")


def test_a_suspended_new_tenant_still_counts(ada: User) -> None:
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        Tenant.objects.update(suspended_at=NOW)
    with pytest.raises(NewTenantLimit):
        found(ada, "Second")


def test_invitations_gather_no_new_tenants(ada: User) -> None:
    """Others found tenants and make one person their owner, or promote them to it."""
    own = found(ada)
    boss = person("boss@example.net")
    other = found(boss, "Other", ip_address="198.51.100.9")
    with tenant_scope(other.pk):
        member = members.add(tenant=other, user=ada, role=Role.MEMBER, project=None, actor=OPERATOR, now=NOW)
        with pytest.raises(NewTenantLimit):
            members.change_role(member, role=Role.OWNER, grants=ALL_ROLES, actor=OPERATOR, now=NOW)
        _, secret = invitations.invite(
            tenant=other, email=boss.email, role=Role.MEMBER, project=None, grants=ALL_ROLES, actor=OPERATOR, now=NOW
        )
    assert own.is_new
    late = person("late@example.net")
    found(late, "Late", ip_address="203.0.113.5")
    with tenant_scope(other.pk), pytest.raises(NewTenantLimit):
        members.add(tenant=other, user=late, role=Role.OWNER, project=None, actor=OPERATOR, now=NOW)
    assert invitations.accept(secret, user=late, actor=actor_of(late), now=NOW).role == "member"


def test_new_tenants_in_which_a_person_may_launch_hold_little_together(
    ada: User, small: Offering, settings: Any
) -> None:
    settings.NEW_TENANT_UNITS_PER_PERSON = 2
    boss = person("boss@example.net")
    own, other = found(ada), found(boss, "Other", ip_address="198.51.100.9")
    for tenant in (own, other):
        with tenant_scope(tenant.pk):
            create_grant(tenant, 10_000, now=NOW)
    with tenant_scope(other.pk):
        members.add(tenant=other, user=ada, role=Role.MEMBER, project=None, actor=OPERATOR, now=NOW)
    launch(own, ada, small)
    launch(other, ada, small)
    for tenant in (own, other):
        with pytest.raises(NewTenantLimit) as refused:
            launch(tenant, ada, small)
        assert "2 units together" in refused.value.detail
    release(other)
    launch(own, ada, small)
    launch(other, ada, small)


def test_new_tenants_of_a_network_hold_little_together(small: Offering, settings: Any) -> None:
    settings.NEW_TENANT_UNITS_PER_NETWORK = 1
    people = [person(f"p{number}@example.org") for number in (1, 2)]
    tenants = [found(user, user.email) for user in people]
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            create_grant(tenant, 10_000, now=NOW)
    launch(tenants[0], people[0], small)
    with pytest.raises(NewTenantLimit) as refused:
        launch(tenants[1], people[1], small)
    assert "network address" in refused.value.detail


def test_the_country_is_kept_for_taxes(ada: User) -> None:
    tenant = found(ada)
    with tenant_scope(tenant.pk):
        details = BillingDetails.objects.get()
    assert (details.country, details.version) == ("DE", 0)


@pytest.mark.parametrize(
    ("mode", "email", "allowed"),
    [
        ("open", "ada@anywhere.example", True),
        ("invitation", "ada@uni.example", False),
        ("domains", "ada@uni.example", True),
        ("domains", "Ada+x@UNI.example", True),
        ("domains", "ada@bücher.example", True),
        ("domains", "ada@xn--bcher-kva.example", True),
        ("domains", "ada@evil.uni.example", False),
        ("domains", "ada@uni.example.evil", False),
        ("domains", "ada@notuni.example", False),
    ],
)
def test_who_may_create_a_tenant(db: None, settings: Any, mode: str, email: str, allowed: bool) -> None:
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = mode, ("Uni.example", "Bücher.example")
    if allowed:
        assert found(person(email)).is_new
    else:
        with pytest.raises(SignUpClosed) as refused:
            found(person(email))
        assert refused.value.fix.text


def test_tenants_are_released_at_once_where_the_setting_says_so(ada: User, settings: Any) -> None:
    settings.RELEASE_NEW_TENANTS = True
    tenant = found(ada)
    assert not tenant.is_new
    with tenant_scope(tenant.pk):
        assert not AccountTerms.objects.exists()
        assert Quota.objects.get().soft_limit == settings.DEFAULT_TENANT_QUOTA_UNITS * 1000
