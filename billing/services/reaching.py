"""Months that nobody has news of: of leases that run on without a transition, and of whatever is owed by the month."""

from datetime import datetime

from django.db import connection

from billing.services import periods
from billing.services.statements import statement
from tenants.models import Tenant
from tenants.services.walls import as_sweep, as_tenant


def reach(*, now: datetime) -> None:
    """Make them, from the first moment that something is owed of until the last: they too are over some day."""
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(statement("unreached"), {"now": now})
        found = cursor.fetchall()
    for tenant_id, since, last in found:
        with as_tenant(tenant_id):
            periods.ensure(Tenant.objects.get(pk=tenant_id), since=since, until=last)
