"""Operators' pages that create a tenant, release a new one and set a currency."""

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.money import EXPONENTS
from billing.models import PaymentTerms
from billing.services.catalogue import price_list
from billing.services.new_tenants import tenant_creation, tenant_currency, tenant_release
from billing.services.new_tenants.tenant_creation import WantedTenant
from tenants.domain import time_zones
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page

PAYMENT_LABELS = (
    (PaymentTerms.INVOICE, gettext_lazy("Invoice, after the end of the month")),
    (PaymentTerms.PREPAID, gettext_lazy("Prepaid, from the wallet")),
)


@dataclass(frozen=True, slots=True)
class NewTenantPage:
    """Form of a tenant that an operator creates; what was typed stays."""

    name: str
    owner_email: str
    country: str
    currency: str
    time_zone: str
    payment: str
    error_field: str

    payments = PAYMENT_LABELS
    countries = sorted(COUNTRY_NAMES.items(), key=lambda pair: pair[1])
    currencies = sorted(EXPONENTS)
    zones = sorted(time_zones.permitted_zones())

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Tenants"), "ops/tenants")]


@operator_page("tenants.create", methods=SAFE_OR_POST)
def create_tenant(request: OperatorRequest) -> HttpResponse:
    """Show the form of a tenant; a POST creates it and invites its owner."""
    given = request.POST

    def save() -> str:
        tenant, invitation = tenant_creation.create_for_owner(
            WantedTenant(
                given.get("name", "").strip(),
                given.get("country", ""),
                given.get("currency", ""),
                given.get("time_zone", ""),
            ),
            owner_email=parse_email(given.get("owner_email", "")),
            payment=given.get("payment", ""),
            actor=request.actor,
            now=request.now,
        )
        return _("{name} was created; {email} is invited as its owner.").format(
            name=tenant.name, email=invitation.email
        )

    return form_page(
        request,
        "operators/tenants/new_tenant.html",
        lambda refusal: NewTenantPage(
            name=given.get("name", ""),
            owner_email=given.get("owner_email", ""),
            country=given.get("country", ""),
            currency=given.get("currency", price_list.listed_currencies(request.now)[0]),
            time_zone=given.get("time_zone", time_zones.UTC),
            payment=given.get("payment", PaymentTerms.INVOICE),
            error_field=refusal.field if isinstance(refusal, InvalidValue) else "",
        ),
        save,
        back=reverse("ops-tenants"),
    )


def parse_email(text: str) -> str:
    """Return a typed e-mail address, or raise InvalidValue."""
    address = text.strip()
    try:
        validate_email(address)
    except ValidationError:
        raise InvalidValue(
            "owner_email", _("This is not an e-mail address."), fix=_("Enter the address of the owner.")
        ) from None
    return address


@dataclass(frozen=True, slots=True)
class TenantReleasePage:
    """A new tenant, and how it pays once it is released."""

    tenant: Tenant
    payment: str
    reason: str

    payments = PAYMENT_LABELS

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This tenant"), f"ops/tenants/{self.tenant.pk}")]


@operator_page("tenants.release", methods=SAFE_OR_POST)
def release_tenant(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show what a release lifts; a POST releases the tenant."""
    tenant = find_tenant_row(pk)

    def save() -> str:
        tenant_release.release_tenant(
            tenant,
            why=request.POST.get("reason", ""),
            payment=request.POST.get("payment", ""),
            actor=request.actor,
            now=request.now,
        )
        return _("{tenant_name} is released.").format(tenant_name=tenant.name)

    return form_page(
        request,
        "operators/tenants/release.html",
        lambda _refusal: TenantReleasePage(
            tenant, request.POST.get("payment", PaymentTerms.INVOICE), request.POST.get("reason", "")
        ),
        save,
        back=reverse("ops-tenants"),
    )


@dataclass(frozen=True, slots=True)
class TenantCurrencyPage:
    """A tenant's currency, and those it can have."""

    tenant: Tenant
    currency: str

    currencies = sorted(EXPONENTS)

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This tenant"), f"ops/tenants/{self.tenant.pk}")]


@operator_page("tenants.currency", methods=SAFE_OR_POST)
def edit_currency(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a tenant's currency; a POST changes it while nothing is charged in it."""
    tenant = find_tenant_row(pk)

    def save() -> str:
        changed = tenant_currency.set_currency(
            tenant, currency=request.POST.get("currency", ""), actor=request.actor, now=request.now
        )
        return _("{tenant_name} is billed in {currency}.").format(tenant_name=changed.name, currency=changed.currency)

    return form_page(
        request,
        "operators/tenants/currency.html",
        lambda _refusal: TenantCurrencyPage(tenant, request.POST.get("currency", tenant.currency)),
        save,
        back=reverse("ops-tenants"),
    )


def find_tenant_row(pk: str) -> Tenant:
    """Return a tenant, or raise ObjectNotFound."""
    return find_row(Tenant.objects.all(), pk, _("Tenant"), fix=_("Select it from the list of tenants."))
