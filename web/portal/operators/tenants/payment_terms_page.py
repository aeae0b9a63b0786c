"""Payment terms and account status of a tenant, as operators set them."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import AccountStatus, AccountTerms, PaymentTerms
from billing.services.funds.accounts import account_terms as services
from billing.services.funds.wallets import wallet_balances
from tenants.models import Tenant
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page


@operator_page("payment_terms", methods=SAFE_OR_POST)
def edit_payment_terms(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a tenant's terms, account status and wallet; a POST sets both with a reason."""
    tenant = find_row(Tenant.objects.all(), pk, _("Tenant"), fix=_("Select it from the list of tenants."))

    def save() -> str:
        services.set_account_terms(
            tenant,
            payment=request.POST.get("payment", ""),
            account_status=request.POST.get("account_status", ""),
            why=request.POST.get("reason", ""),
            actor=request.actor,
            now=request.now,
        )
        return _("Payment terms of {tenant_name} saved.").format(tenant_name=tenant.name)

    return form_page(
        request,
        "operators/tenants/payment_terms.html",
        lambda _: build_payment_terms_page(request, tenant),
        save,
        back=reverse("ops-payment-terms", args=[pk]),
    )


@dataclass(frozen=True, slots=True)
class PaymentTermsPage:
    """Payment terms, account status and wallet of a tenant."""

    tenant: Tenant
    terms: AccountTerms
    funds: wallet_balances.WalletFunds
    payment: str
    account_status: str

    payments = PaymentTerms.choices
    status_choices = AccountStatus.choices

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Payment terms of all tenants"), "ops/payment-terms", tenant=self.tenant.pk)]


def build_payment_terms_page(request: OperatorRequest, tenant: Tenant) -> PaymentTermsPage:
    """Read a tenant's terms and wallet; what was typed replaces what is stored."""
    found = services.terms_of(tenant)
    return PaymentTermsPage(
        tenant=tenant,
        terms=found,
        funds=wallet_balances.wallet_funds(tenant, now=request.now),
        payment=request.POST.get("payment", found.payment),
        account_status=request.POST.get("account_status", found.account_status),
    )
