"""Wallet page: balance, grants with their expiry, and what they paid."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.domain.money import exponent_of, format_fixed_point
from billing.models import AccountTerms, AutoTopUp, Grant, GrantDraw, TopUp
from billing.services.funds.accounts import account_terms
from billing.services.funds.grants import grant_balances
from billing.services.funds.grants.grant_balances import GrantBalance, GrantState
from billing.services.funds.wallets import wallet_balances
from billing.services.ledger import ledger_balances
from ports import payments
from tenants.models import Project
from tenants.services.authentication import require
from web.portal.page_context import PageRequest, tenant_page
from web.portal.wallet import topup_actions

MAX_GRANTS = 200
MAX_DRAWS = 30  # latest payments by grants on the page


@dataclass(frozen=True)
class GrantRow:
    """A grant with its state, and its scope in words."""

    grant_balance: GrantBalance
    scope: str

    @property
    def percent(self) -> int:
        return self.grant_balance.left * 100 // self.grant_balance.grant.minor


@tenant_page("billing.read")
def show_wallet(request: PageRequest) -> HttpResponse:
    """Show the balance and every grant."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    return render(request, "wallet/wallet.html", {"page": build_wallet_page(request)})


@dataclass(frozen=True, slots=True)
class WalletPage:
    """Balance, grants and top-ups of a tenant."""

    rows: list[GrantRow]
    draws: list[GrantDraw]
    balance: int
    topups: list[TopUp]
    rule: AutoTopUp | None
    rule_threshold: str
    rule_amount: str
    may_pay: bool
    terms: AccountTerms
    funds: wallet_balances.WalletFunds

    @property
    def usable_grants(self) -> list[GrantBalance]:
        return [row.grant_balance for row in self.rows if row.grant_balance.state == GrantState.USABLE]

    @property
    def credit(self) -> int:
        return sum(each.left for each in self.usable_grants)

    @property
    def credit_expires_at(self) -> datetime | None:
        """Return when the first usable grant expires."""
        return min((at for each in self.usable_grants if (at := each.grant.expires_at)), default=None)


def build_wallet_page(request: PageRequest) -> WalletPage:
    """Read what the wallet page of a tenant shows."""
    tenant, places = request.tenant, exponent_of(request.tenant.currency)
    draws = GrantDraw.objects.filter(tenant=tenant).select_related("invoice__period", "grant", "line")
    topups = TopUp.objects.filter(tenant=tenant).order_by("-opened_at", "-pk")
    rule = AutoTopUp.objects.filter(tenant=tenant).first()
    return WalletPage(
        rows=grant_rows(Grant.objects.filter(tenant=tenant), request),
        draws=list(draws.order_by("-at", "pk")[:MAX_DRAWS]),
        balance=ledger_balances.available_balance(tenant.pk, tenant.currency),
        topups=list(topups[: topup_actions.MAX_TOPUPS]),
        rule=rule,
        rule_threshold=format_fixed_point(rule.threshold_minor, places) if rule else "",
        rule_amount=format_fixed_point(rule.minor, places) if rule else "",
        may_pay=request.roles.may("billing.write", ()) and payments.gateway() is not None,
        terms=account_terms.terms_of(tenant),
        funds=wallet_balances.wallet_funds(tenant, now=request.now),
    )


def grant_rows(grants: QuerySet[Grant], request: PageRequest) -> list[GrantRow]:
    """Return grants with their state, latest first; six queries."""
    rows = list(grants.select_related("lapse", "offering").order_by("-given_at", "-pk")[:MAX_GRANTS])
    names = dict(Project.objects.filter(tenant=request.tenant).values_list("pk", "name"))
    return [
        GrantRow(each, grant_scope(each.grant, names)) for each in grant_balances.grant_balances(rows, now=request.now)
    ]


def grant_scope(grant: Grant, names: dict[str, str]) -> str:
    """Return the scope of a grant in words."""
    where = (
        _("in {project_id} and subprojects").format(project_id=names.get(grant.project_id, grant.project_id))
        if grant.project_id
        else ""
    )
    what = grant.offering.label if grant.offering else "everything" if not where else ""
    return " ".join(word for word in (what, where) if word)
