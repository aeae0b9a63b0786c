"""Forms of the wallet's page: putting money in, and the rule by which that happens by itself."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from billing.domain.money import Money
from billing.portal.pages import PageRequest, page
from billing.services.topups import by_itself, opening
from tenants.portal.acts import act
from tenants.services.permissions import require

SHOWN = 20  # top-ups on the page, the latest


@require_POST
@page("billing.read")
def top_up(request: PageRequest) -> HttpResponse:
    """Ask for the money; the page one comes back to shows what becomes of it."""
    require(request.roles, "billing.write", ())
    tenant = request.tenant

    def do() -> None:
        minor = opening.amount(request.POST.get("amount", ""), tenant.currency, "amount")
        made = opening.top_up(tenant, minor=minor, actor=request.actor, now=request.now)
        messages.success(request, f"{Money(made.minor, made.currency)} are being collected.")

    return act(request, do, done="It is in the wallet once that is done.", to="wallet")


@require_POST
@page("billing.read")
def rule(request: PageRequest) -> HttpResponse:
    """Set the rule, or take it away where nothing was typed."""
    require(request.roles, "billing.write", ())
    tenant, typed = (
        request.tenant,
        {name: request.POST.get(name, "").strip() for name in ("threshold", "amount")},
    )
    if not any(typed.values()):
        by_itself.unset_rule(tenant, actor=request.actor, now=request.now)
        messages.success(request, "The wallet is topped up by hand only.")
        return redirect("wallet")

    def do() -> None:
        by_itself.set_rule(
            tenant,
            threshold=opening.amount(typed["threshold"], tenant.currency, "threshold"),
            minor=opening.amount(typed["amount"], tenant.currency, "amount"),
            actor=request.actor,
            now=request.now,
        )

    return act(request, do, done="The wallet is topped up by itself from now on.", to="wallet")
