"""Demo billing: all usage charged, past months closed and collected, the current one drafted."""

from collections.abc import Mapping
from datetime import datetime

from billing.services.demo.seed.seed_tenants import DemoTenant
from billing.services.funds.budgets import budget_settings
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection, payment_creation
from billing.services.rating import lease_rating
from broker.services.reconciler import lease_reconciler
from ports import outbox
from tenants.models import Project, Tenant
from tenants.services.rls import system_scope, tenant_scope


def close_and_draft(*, now: datetime) -> None:
    """Rate all usage up to now, close past months, draft the current one."""
    lease_reconciler.check_active_leases(now=now)  # a month needs a later observation of every active lease to close
    lease_rating.rate_all_leases(now=now)
    close_month.close_due_months(now=now)
    _collect_payments(now)
    with system_scope():
        everyone = list(Tenant.objects.values_list("pk", flat=True))
    drafts.refresh_all_drafts(everyone, now=now)


def set_budgets(cast: DemoTenant, minor: Mapping[str, int], *, now: datetime) -> None:
    """Set a tenant's monthly budgets by project name; "" is the whole tenant."""
    tenant, owner = cast.tenant, next(iter(cast.actors.values()))
    with tenant_scope(tenant.pk):
        nodes = cast.projects | {"": Project.objects.get(tenant=tenant, parent=None)}
        for name, amount in minor.items():
            budget_settings.set_budget(project=nodes[name], limit_minor=amount, actor=owner, now=now)


def _collect_payments(now: datetime) -> None:
    """Do at once what workers would do within a minute; nothing without a payment gateway."""
    with outbox.captured(lambda *_: None):
        payment_creation.open_due_payments(now=now)
    for _, payment_id, tenant_id in payment_collection.PAYMENTS.due(now=now):
        payment_collection.PAYMENTS.collect(payment_id, tenant_id, now=now)
