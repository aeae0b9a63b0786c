"""The story's money: everything charged, months that are over closed and collected, the present one drafted."""

from collections.abc import Mapping
from datetime import datetime

from billing.services import closing, drafts, rating
from billing.services.funds import budgets
from billing.services.payments import collecting, opening
from billing.services.showcase.people import Cast
from broker.services import reconcile
from ports import doorbell
from tenants.models import Project, Tenant
from tenants.services.walls import as_sweep, as_tenant


def close_and_draft(*, now: datetime) -> None:
    """Rate all usage up to now, close what is over, draft what is not."""
    reconcile.look_at_active(now=now)  # no month closes over a lease that nobody has seen alive since
    rating.rate(now=now)
    closing.close_due(now=now)
    _collect(now)
    with as_sweep():
        everyone = list(Tenant.objects.values_list("pk", flat=True))
    drafts.refresh_all(everyone, now=now)


def limit(cast: Cast, minor: Mapping[str, int], *, now: datetime) -> None:
    """Give a tenant budgets: so much a month for the whole of it ("") and for its projects, by their names."""
    tenant, owner = cast.tenant, next(iter(cast.actors.values()))
    with as_tenant(tenant.pk):
        nodes = cast.projects | {"": Project.objects.get(tenant=tenant, parent=None)}
        for name, amount in minor.items():
            budgets.set_limit(project=nodes[name], limit_minor=amount, actor=owner, now=now)


def _collect(now: datetime) -> None:
    """Do at once what workers would do within the first minute; nothing where nobody collects."""
    with doorbell.heard_by(lambda *_: None):
        opening.open_due(now=now)
    for _, payment_id, tenant_id in collecting.due(now=now):
        collecting.collect(payment_id, tenant_id, now=now)
