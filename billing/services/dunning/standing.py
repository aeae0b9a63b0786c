"""How a tenant stands while something of it is overdue; what operators set is theirs to take back."""

from datetime import datetime

from django.db.models import Exists, OuterRef

from billing.domain.dunning import Action
from billing.domain.money import Money
from billing.models import DunningStep, Invoice, InvoiceStatus, TenantStanding, TenantTerms
from billing.services.disputes import window
from billing.services.wallets import terms
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

BILLING = Actor("system", "", "billing")
OURS = "Overdue: "  # what our reasons begin with
PAID = "Everything that was overdue is paid, or disputed."
WORSE = {Action.REMIND: TenantStanding.GRACE, Action.SUSPEND: TenantStanding.SUSPENDED}
ORDER = list(TenantStanding)


def worsen(tenant: Tenant, action: Action, invoice: Invoice, *, minor: int, now: datetime) -> None:
    """Let a tenant stand as a step of so much says, unless it stands worse already."""
    found = terms.of(tenant)
    wanted = WORSE.get(action, TenantStanding.SUSPENDED)
    if ORDER.index(wanted) <= ORDER.index(TenantStanding(found.standing)):
        return
    due = Money(minor, invoice.currency)
    why = f"{OURS}{due} of invoice {invoice} should have been paid by {invoice.due_at:%d %b %Y}."
    terms.set_terms(tenant, payment=found.payment, standing=wanted, why=why, actor=BILLING, now=now)


def again(tenant: Tenant, invoice: Invoice, *, now: datetime) -> None:
    """Let a tenant stand as the last step of an invoice said, where some of it may be gone after again."""
    last = DunningStep.objects.filter(invoice=invoice).order_by("-n").first()
    if last and (minor := window.chased(invoice)) > 0:
        worsen(tenant, Action(last.action), invoice, minor=minor, now=now)


def lift(*, now: datetime) -> int:
    """Let every tenant stand well again of which nothing that we went after is due and undisputed; return how many."""
    reminded = Invoice.objects.filter(
        Exists(DunningStep.objects.filter(invoice=OuterRef("pk"))),
        tenant=OuterRef("tenant"),
        status=InvoiceStatus.FINALIZED,
    )
    due = window.to_chase(reminded)
    with as_sweep():
        paid = TenantTerms.objects.filter(~Exists(due), why__startswith=OURS).exclude(
            standing=TenantStanding.GOOD
        )
        found = list(paid.values_list("tenant_id", flat=True))
    for tenant_id in found:
        with as_tenant(tenant_id):
            tenant = Tenant.objects.get(pk=tenant_id)
            terms.set_terms(
                tenant,
                payment=terms.of(tenant).payment,
                standing=TenantStanding.GOOD,
                why=PAID,
                actor=BILLING,
                now=now,
            )
    return len(found)
