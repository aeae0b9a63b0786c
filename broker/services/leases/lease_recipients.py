"""Recipients of e-mails about one lease."""

from broker.models import Lease
from tenants.domain.roles import Role
from tenants.models import Member


def find_recipients(lease: Lease) -> list[str]:
    """Return the address of the lease's requester, or else of its tenant's owners and admins.

    Runs inside its tenant's transaction.
    """
    members = Member.objects.filter(tenant_id=lease.tenant_id, user__is_active=True)
    requester = members.filter(user=lease.requested_by)
    # Service accounts read no e-mail, and former members are not told.
    leads = members.filter(project=None, role__in=[Role.OWNER, Role.ADMIN])
    for found in (requester, leads):
        if addresses := sorted(set(found.values_list("user__email", flat=True))):
            return addresses
    return []
