"""Creation of tenants: by whoever signs up, or by operators for an owner they invite."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.money import EXPONENTS
from billing.models import AccountTerms, BillingDetails, PaymentTerms
from billing.services.catalogue import price_list
from billing.services.new_tenants import trial_credits
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.domain.single_line_text import is_name
from tenants.models import Invitation, Tenant, User
from tenants.services import invitations, new_tenants, sign_ups, tenants
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope

NEW_TENANT_REASON = "A new tenant pays in advance, or saves a payment card, until operators have released it."
CREATED_REASON = "Set when operators created the tenant."
OWNER_GRANTS = RoleGrants((RoleGrant(Role.OWNER),))


@dataclass(frozen=True, slots=True)
class WantedTenant:
    """What is asked of whoever creates a tenant."""

    name: str
    country: str  # ISO 3166-1, two letters; empty if unknown
    currency: str
    time_zone: str


@transaction.atomic
def found_tenant(wanted: WantedTenant, *, user: User, ip_address: str, actor: Actor, now: datetime) -> Tenant:
    """Create a new tenant for a person, with trial credit if there is any.

    It pays in advance. Raises SignUpClosed, NewTenantLimit or InvalidValue. The transaction is scoped to the tenant
    afterwards.
    """
    _check(wanted)
    if wanted.currency not in price_list.listed_currencies(now):
        raise InvalidValue("currency", f"Nothing is sold in {wanted.currency}.", fix="Choose one from the list.")
    tenant = new_tenants.found_tenant(
        user=user,
        name=wanted.name,
        currency=wanted.currency,
        time_zone=wanted.time_zone,
        ip_address=ip_address,
        actor=actor,
        now=now,
    )
    _set_country(tenant, wanted, now)
    if tenant.is_new:
        _set_terms(tenant, PaymentTerms.PREPAID, NEW_TENANT_REASON, now)
    trial_credits.give_trial_credit(tenant, mailbox=tenant.founder, now=now)
    return tenant


@transaction.atomic
def found_wanted_tenant(user: User, *, ip_address: str, actor: Actor, now: datetime) -> Tenant | None:
    """Create the tenant that a person asked for at sign-up, once.

    None if they asked for none. What was asked for stays if it is refused.
    """
    wanted = sign_ups.take_sign_up(user)
    if wanted is None:
        return None
    asked = WantedTenant(wanted.organisation, wanted.country, wanted.currency, wanted.time_zone)
    return found_tenant(asked, user=user, ip_address=ip_address, actor=actor, now=now)


@transaction.atomic
def create_for_owner(
    wanted: WantedTenant, *, owner_email: str, payment: str, actor: Actor, now: datetime
) -> tuple[Tenant, Invitation]:
    """Create a released tenant and invite its owner; only operators do this.

    The transaction is scoped to no tenant afterwards.
    """
    _check(wanted)
    if payment not in PaymentTerms.values:
        raise InvalidValue("payment", "The payment terms are not valid.", fix="Choose invoice or prepaid.")
    if wanted.currency not in EXPONENTS:
        raise InvalidValue("currency", f"{wanted.currency!r} is not a currency.", fix="Use a code such as EUR.")
    with tenant_scope(""):
        tenant, _ = tenants.create(
            name=wanted.name,
            owner=None,
            time_zone=wanted.time_zone,
            currency=wanted.currency,
            actor=actor,
            now=now,
        )
        _set_country(tenant, wanted, now)
        if payment != PaymentTerms.INVOICE:
            _set_terms(tenant, PaymentTerms(payment), CREATED_REASON, now)
        invitation, _ = invitations.invite(
            tenant=tenant,
            email=owner_email,
            role=Role.OWNER,
            project=None,
            grants=OWNER_GRANTS,
            actor=actor,
            now=now,
        )
    return tenant, invitation


def _check(wanted: WantedTenant) -> None:
    if not is_name(wanted.name):
        raise InvalidValue("name", "A name has 1 to 120 characters, none of them invisible.", fix="Enter another name.")
    if wanted.country and wanted.country not in COUNTRY_NAMES:
        raise InvalidValue("country", "The country was not found.", fix="Use a two-letter code such as DE.")


def _set_terms(tenant: Tenant, payment: PaymentTerms, why: str, now: datetime) -> None:
    AccountTerms.objects.create(tenant=tenant, payment=payment, why=why, since=now)


def _set_country(tenant: Tenant, wanted: WantedTenant, now: datetime) -> None:
    """Keep the country for taxes; the rest of the address comes later."""
    if wanted.country:
        BillingDetails.objects.create(
            tenant=tenant, name=wanted.name, country=wanted.country, version=0, changed_at=now
        )
