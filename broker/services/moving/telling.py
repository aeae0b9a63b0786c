"""A letter to whoever a move concerns, for nobody looks at a page all day."""

from django.conf import settings

from broker.models import Lease
from ports import mail
from tenants.domain.roles import Role
from tenants.models import Member

LETTER = """{name} {told}.

Its program is stopped then and started again on the other card, which takes about {cost_s} seconds. {stays} Nothing is
charged in between; its price and its time stay what they are. You are told because its tenant allows that it is moved.

To keep it where it is, say so before then:
{link}
"""


def write(lease: Lease, *, told: str, cost_s: int) -> None:
    """Write to whoever asked for the lease, or to those who lead its tenant. Inside its tenant's transaction."""
    volume = lease.volume.name if lease.volume else ""
    stays = (
        f"{volume} comes along, and what lies outside its home is lost."
        if volume
        else "All that it wrote is lost."
    )
    text = LETTER.format(
        name=lease.name,
        told=told,
        cost_s=cost_s,
        stays=stays,
        link=f"{settings.PUBLIC_URL.rstrip('/')}/leases/{lease.pk}/",
    )
    for address in _concerned(lease):
        mail.send(to=address, subject=f"{lease.name} will be moved to another card", text=text)


def _concerned(lease: Lease) -> list[str]:
    members = Member.objects.filter(tenant_id=lease.tenant_id, user__is_active=True)
    asked = members.filter(user=lease.requested_by)
    # A machine reads no letters, and who has left is told nothing.
    leads = members.filter(project=None, role__in=[Role.OWNER, Role.ADMIN])
    for found in (asked, leads):
        if addresses := sorted(set(found.values_list("user__email", flat=True))):
            return addresses
    return []
