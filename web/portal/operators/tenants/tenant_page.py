"""One tenant as operators see it: projects, members, money, leases and audit log."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import (
    AccountStatus,
    AccountTerms,
    BillingDetails,
    Dispute,
    DisputeStatus,
    Grant,
    Invoice,
    PaymentTerms,
)
from billing.models.invoices import InvoiceStatus
from billing.services.funds.accounts import account_terms
from billing.services.funds.grants import grant_balances
from billing.services.funds.grants.grant_balances import GrantBalance, GrantState
from billing.services.funds.wallets import wallet_balances
from billing.services.ledger import ledger_balances
from billing.services.rating import spend
from billing.services.reports import spend_rates
from billing.services.reports.spend_rates import SpendRates
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.models import AuditEvent, Tenant
from tenants.services.rls import login_role_scope, tenant_scope
from web.portal.actions import operator_api_call
from web.portal.audit.audit_log import describe_events
from web.portal.leases.lease_table import LeaseRow, lease_rows, prefetch_for_rows
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, find_row, operator_page
from web.portal.operators.system.system_lists import TENANT_AUDIT_LIST
from web.portal.operators.tenants import risk_signals
from web.portal.operators.tenants.risk_signals import RiskSignal
from web.portal.operators.tenants.spend_rate_chart import rate_track
from web.portal.operators.tenants.tenant_people import (
    MEMBER_LIST,
    TENANT_TOKEN_LIST,
    member_row,
    members_of,
    token_row,
    tokens_of,
)
from web.portal.operators.tenants.tenant_projects import MAX_PROJECTS, ProjectRow, project_rows

MAX_LEASES, MAX_INVOICES, MAX_GRANTS, MAX_EVENTS, MAX_PEOPLE = 20, 12, 20, 20, 20
LISTS = (TENANT_AUDIT_LIST, MEMBER_LIST, TENANT_TOKEN_LIST)
LIVE_STATES = ",".join(state.value for state in LeaseState if state != LeaseState.RELEASED)


@operator_page("tenant")
def show_tenant(request: OperatorRequest, pk: str) -> Any:
    """Show a tenant; what can be done to it starts here."""
    tenant = find_row(Tenant.objects.all(), pk, _("Tenant"), fix=_("Select it from the list of tenants."))
    if wants_csv(request):
        return read_lists(request, *LISTS).csv(
            (TENANT_AUDIT_LIST, lambda: events_of(tenant)),
            (MEMBER_LIST, lambda: members_of(tenant)),
            (TENANT_TOKEN_LIST, lambda: tokens_of(tenant, now=request.now)),
        )
    return render(request, "operators/tenants/tenant.html", {"page": build_tenant_page(request, tenant)})


@dataclass(frozen=True, slots=True)
class TenantMoney:
    """What a tenant owes, has, spends and has agreed on."""

    terms: AccountTerms
    owed: list[Money]
    overdue_since: datetime | None  # when the oldest unpaid invoice was due, if that is over
    funds: wallet_balances.WalletFunds
    forecast: int  # minor units, at the end of the month
    grants: list[GrantBalance]
    details: BillingDetails | None

    @property
    def credit(self) -> int:
        """Return what is left of all credit, in minor units."""
        return sum(each.left for each in self.grants if each.state == GrantState.USABLE)

    @property
    def prepaid(self) -> bool:
        return self.terms.payment == "prepaid"


@dataclass(frozen=True, slots=True)
class TenantPage:
    """A tenant with everything that belongs to it, the latest first."""

    tenant: Tenant
    now: datetime
    money: TenantMoney
    projects: list[ProjectRow]
    leases: list[LeaseRow]
    live: int
    active: int
    queued: int
    ended: int
    invoices: list[Invoice]
    members: FilteredList
    tokens: FilteredList
    events: FilteredList
    disputes: int
    rates: SpendRates
    signals: list[RiskSignal]

    @property
    def raised(self) -> int:
        return sum(each.raised for each in self.signals)

    @property
    def takes_payments(self) -> bool:
        return self.money.terms.payment != PaymentTerms.SHOWBACK

    @property
    def rate_track(self) -> dict[str, Any]:
        """Return what the chart of the spend rate draws."""
        return rate_track(self.rates, self.root.burn, limit=self.root.burn_limit, tenant=self.tenant)

    @property
    def root(self) -> ProjectRow:
        return self.projects[0]

    @property
    def overdue(self) -> timedelta | None:
        since = self.money.overdue_since
        return self.now - since if since else None

    @property
    def account_badge(self) -> tuple[str, str]:
        """Return the state and the kind of its badge."""
        if self.tenant.suspended_at or self.money.terms.account_status == AccountStatus.SUSPENDED:
            return "suspended", "danger"
        if self.money.terms.account_status == AccountStatus.GRACE:
            return "grace", "warning"
        return "good", "success"

    @property
    def hidden_leases(self) -> int:
        return self.live - len(self.leases)

    @property
    def calls(self) -> list[dict[str, str]]:
        key = self.tenant.pk
        return [
            operator_api_call(_("This tenant"), f"ops/tenants/{key}"),
            operator_api_call(_("Projects"), "ops/projects", tenant=key, limit=MAX_PROJECTS),
            operator_api_call(_("Leases"), "ops/leases", tenant=key, state=LIVE_STATES, limit=MAX_LEASES),
            operator_api_call(_("Invoices"), "ops/invoices", tenant=key, limit=MAX_INVOICES),
            operator_api_call(_("Members"), "ops/members", tenant=key, limit=MAX_PEOPLE),
            operator_api_call(_("Tokens"), "ops/tenant-tokens", tenant=key, limit=MAX_PEOPLE),
            operator_api_call(_("Credit"), "ops/grants", tenant=key, limit=MAX_GRANTS),
            operator_api_call(_("Audit log"), "ops/audit-events", tenant=key, limit=MAX_EVENTS),
        ]


def build_tenant_page(request: OperatorRequest, tenant: Tenant) -> TenantPage:
    """Read a tenant for operators; the number of queries does not grow with its rows."""
    now = request.now
    rows = Lease.objects.filter(tenant=tenant)
    counts = {state: rows.filter(state=state).count() for state in (LeaseState.ACTIVE, LeaseState.QUEUED)}
    live = rows.live().count()
    invoices = Invoice.objects.filter(tenant=tenant).select_related("period").order_by("-period__label", "-pk")
    lists = read_lists(request, *LISTS)
    members = lists.read(MEMBER_LIST, members_of(tenant), most=MAX_PEOPLE)
    tokens = lists.read(TENANT_TOKEN_LIST, tokens_of(tenant, now=now), most=MAX_PEOPLE)
    events = lists.read(TENANT_AUDIT_LIST, events_of(tenant), most=MAX_EVENTS)
    projects = project_rows(tenant, now=now)
    with login_role_scope(), tenant_scope(tenant.pk):
        listed = list(prefetch_for_rows(Lease.objects.filter(tenant=tenant).live().order_by("-pk"))[:MAX_LEASES])
        leases = lease_rows(listed, currency=tenant.currency, now=now)
        rates = spend_rates.read_spend_rates(now=now)
    money = tenant_money(tenant, now=now)
    return TenantPage(
        tenant=tenant,
        now=now,
        money=money,
        projects=projects,
        leases=leases,
        live=live,
        active=counts[LeaseState.ACTIVE],
        queued=counts[LeaseState.QUEUED],
        ended=rows.filter(state=LeaseState.RELEASED).count(),
        invoices=list(invoices[:MAX_INVOICES]),
        members=members.with_rows([member_row(each) for each in members.rows]),
        tokens=tokens.with_rows([token_row(each) for each in tokens.rows]),
        events=events.with_rows(describe_events(events.rows, currency=tenant.currency)),
        disputes=Dispute.objects.filter(tenant=tenant, status=DisputeStatus.OPEN).count(),
        rates=rates,
        signals=[
            risk_signals.overdue_signal(tenant, money.owed, money.overdue_since, now=now),
            risk_signals.declined_signal(tenant, now=now),
            risk_signals.dispute_signal(tenant),
            risk_signals.spend_rate_signal(projects[0].burn, rates, tenant.currency),
            risk_signals.quota_signal(projects[0].quotas),
            risk_signals.age_signal(tenant, now=now),
        ],
    )


def events_of(tenant: Tenant) -> QuerySet[AuditEvent]:
    """Return the tenant's audit log, newest first."""
    return AuditEvent.objects.filter(tenant_id=tenant.pk).order_by("-at", "-pk")


def tenant_money(tenant: Tenant, *, now: datetime) -> TenantMoney:
    """Read what a tenant owes, has and spends."""
    due = Invoice.objects.filter(tenant=tenant, status=InvoiceStatus.FINALIZED, due_at__lt=now)
    late = [each.due_at for each in due if each.due and each.due_at]
    grants = Grant.objects.filter(tenant=tenant).select_related("lapse", "offering").order_by("-given_at", "-pk")
    with login_role_scope(), tenant_scope(tenant.pk):
        forecast = spend.spend_by_month_end(tenant, now=now)
    return TenantMoney(
        terms=account_terms.terms_of(tenant),
        owed=ledger_balances.amounts_owed(tenant.pk),
        overdue_since=min(late, default=None),
        funds=wallet_balances.wallet_funds(tenant, now=now),
        forecast=forecast,
        grants=grant_balances.grant_balances(grants[:MAX_GRANTS], now=now),
        details=BillingDetails.objects.filter(tenant=tenant).first(),
    )
