"""Form actions of the wallet page: top up now, and the automatic top-up rule."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.services.payments.topups import automatic_topups, topup_creation
from tenants.services.authentication import require
from web.portal.actions import outcome_message
from web.portal.page_context import POST, PageRequest, tenant_page

MAX_TOPUPS = 20  # latest top-ups on the page


@tenant_page("billing.read", methods=POST)
def start_top_up(request: PageRequest) -> HttpResponse:
    """Start a top-up, then show the wallet again."""
    require(request.roles, "billing.write", ())
    tenant = request.tenant
    with outcome_message(request, done=_("It is added to the wallet once paid.")):
        minor = topup_creation.parse_topup_amount(request.POST.get("amount", ""), tenant.currency, "amount")
        made = topup_creation.open_topup(tenant, minor=minor, actor=request.actor, now=request.now)
        messages.success(request, _("{amount} is being collected.").format(amount=Money(made.minor, made.currency)))
    return redirect("wallet")


@tenant_page("billing.read", methods=POST)
def set_top_up_rule(request: PageRequest) -> HttpResponse:
    """Set the automatic top-up rule, or remove it if the form is empty."""
    require(request.roles, "billing.write", ())
    tenant, typed = (request.tenant, {name: request.POST.get(name, "").strip() for name in ("threshold", "amount")})
    if not any(typed.values()):
        automatic_topups.remove_automatic_topup(tenant, actor=request.actor, now=request.now)
        messages.success(request, _("Auto top-up is off."))
        return redirect("wallet")
    with outcome_message(request, done=_("Auto top-up is on.")):
        automatic_topups.set_automatic_topup(
            tenant,
            threshold=topup_creation.parse_topup_amount(typed["threshold"], tenant.currency, "threshold"),
            minor=topup_creation.parse_topup_amount(typed["amount"], tenant.currency, "amount"),
            actor=request.actor,
            now=request.now,
        )
    return redirect("wallet")
