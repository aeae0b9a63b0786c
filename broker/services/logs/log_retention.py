"""Delete the logs of leases that ended long ago."""

from datetime import datetime, timedelta

from django.conf import settings

from broker.models import LeaseLog
from broker.services.logs.log_storage import delete_log
from tenants.services.rls import system_scope, tenant_scope

BATCH = 1000


def delete_old_logs(*, now: datetime) -> int:
    """Delete logs that are complete for longer than they are kept; return how many."""
    before = now - timedelta(days=settings.LOG_RETENTION_DAYS)
    with system_scope():
        old = LeaseLog.objects.filter(completed_at__lt=before).order_by("completed_at")
        found = list(old.values_list("lease_id", "tenant_id")[:BATCH])
    deleted = 0
    for lease_id, tenant_id in found:
        with tenant_scope(tenant_id):
            if log := LeaseLog.objects.filter(pk=lease_id, completed_at__lt=before).first():
                delete_log(log)
                deleted += 1
    return deleted
