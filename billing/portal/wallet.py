"""The wallet: what of a tenant's money and credit is with us, when credit ends, and what it paid."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.domain.money import exponent_of, fixed_point
from billing.models import AutoTopUp, Grant, GrantDraw, TopUp
from billing.portal import calls, topups
from billing.portal.pages import PageRequest, page
from billing.services.grants import purse
from billing.services.grants.purse import Stands, State
from billing.services.ledger import books
from billing.services.wallets import money, terms
from ports import payments
from tenants.models import Project
from tenants.services.permissions import require

SHOWN = 200
PAID = 30  # of what grants paid, the latest


@dataclass(frozen=True)
class Given:
    """A grant as it is shown: how it stands, and in words for what it may be drawn."""

    stands: Stands
    scope: str

    @property
    def percent(self) -> int:
        return self.stands.left * 100 // self.stands.grant.minor


@require_GET
@page("billing.read")
def wallet(request: PageRequest) -> HttpResponse:
    """Show the balance, and every grant as it stands."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    rows = given(Grant.objects.filter(tenant=request.tenant), request)
    draws = GrantDraw.objects.filter(tenant=request.tenant).select_related("invoice__period", "grant", "line")
    usable = [row for row in rows if row.stands.state == State.USABLE]
    ends = [row.stands.grant.expires_at for row in usable if row.stands.grant.expires_at]
    rule = AutoTopUp.objects.filter(tenant=request.tenant).first()
    shown = {
        "rows": rows,
        "draws": list(draws.order_by("-at", "pk")[:PAID]),
        "balance": books.balance(request.tenant.pk, request.tenant.currency),
        "credit": sum(row.stands.left for row in usable),
        "topups": list(
            TopUp.objects.filter(tenant=request.tenant).order_by("-opened_at", "-pk")[: topups.SHOWN]
        ),
        "rule": rule,
        "rule_threshold": fixed_point(rule.threshold_minor, exponent_of(request.tenant.currency))
        if rule
        else "",
        "rule_amount": fixed_point(rule.minor, exponent_of(request.tenant.currency)) if rule else "",
        "may_pay": request.roles.may("billing.write", ()) and payments.gateway() is not None,
        "call_topup": calls.post("/topups", {"amount": "100.00"}),
        "call_topups": calls.get("/topups?limit=500"),
        "call_rule": calls.get("/topup-rule"),
        "terms": terms.of(request.tenant),
        "funds": money.funds(request.tenant, now=request.now),
        "ends": min(ends, default=None),
        "currency": request.tenant.currency,
        "tenant": request.tenant,
        "now": request.now,
        "call": calls.get("/grants?limit=500"),
        "call_balance": calls.get("/balance"),
        "call_wallet": calls.get("/wallet"),
    }
    return render(request, "billing/wallet.html", shown)


def given(grants: QuerySet[Grant], request: PageRequest) -> list[Given]:
    """Return grants as they stand, the latest first; six queries."""
    rows = list(grants.select_related("lapse", "offering").order_by("-given_at", "-pk")[:SHOWN])
    names = dict(Project.objects.filter(tenant=request.tenant).values_list("pk", "name"))
    return [Given(each, scope(each.grant, names)) for each in purse.standing(rows, now=request.now)]


def scope(grant: Grant, names: dict[str, str]) -> str:
    """Say for what a grant may be drawn."""
    where = f"in {names.get(grant.project_id, grant.project_id)} and below" if grant.project_id else ""
    what = grant.offering.label if grant.offering else "everything" if not where else ""
    return " ".join(word for word in (what, where) if word)
