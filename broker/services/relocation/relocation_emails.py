"""E-mail that announces a relocation to the people concerned."""

from django.conf import settings

from broker.models import Lease
from broker.services.leases.lease_recipients import find_recipients
from ports import mail

EMAIL_TEXT = """{name} {message}.

The lease is then stopped and restarted on another GPU, which takes about {cost_s} seconds. {stays}
Downtime is free; price and duration do not change. You get this e-mail because relocation is allowed for this lease.

To keep the lease where it is, disallow relocation before then:
{link}
"""


def send_relocation_email(lease: Lease, *, message: str, cost_s: int) -> None:
    """E-mail the requester of the lease, or else its tenant's owners and admins.

    Runs inside its tenant's transaction.
    """
    volume = lease.volume.name if lease.volume else ""
    stays = f"Volume {volume} is kept; data outside /home is lost." if volume else "All data on the lease is lost."
    text = EMAIL_TEXT.format(
        name=lease.name,
        message=message,
        cost_s=cost_s,
        stays=stays,
        link=f"{settings.PUBLIC_URL.rstrip('/')}/leases/{lease.pk}/",
    )
    for address in find_recipients(lease):
        mail.send_after_commit(to=address, subject=f"{lease.name} will be moved to another GPU", text=text)
