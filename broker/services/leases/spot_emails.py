"""E-mails about the notice to a spot lease."""

from datetime import datetime

from django.conf import settings

from broker.models import Lease
from broker.services.leases.lease_recipients import find_recipients
from ports import mail

NOTICE_TEXT = """{name} is a spot lease, and its capacity is needed for an on-demand request.

It ends at {at:%H:%M:%S} UTC on {at:%d %B %Y}, and is charged until then. {hook} {data} {after}

{link}
"""
WITHDRAWAL_TEXT = """The notice for {name} is withdrawn: its capacity is no longer needed for another request.

It keeps running and is charged as before.

{link}
"""


def send_notice_email(lease: Lease, *, now: datetime) -> None:
    """E-mail the people concerned that a spot lease ends, unless that is now."""
    if lease.reclaim_at is None or lease.reclaim_at <= now:
        return
    hook = "Its checkpoint command is run now." if lease.checkpoint_command else "Save what you need before then."
    volume = lease.volume.name if lease.volume else ""
    data = f"Volume {volume} is kept; data outside /home is lost." if volume else "All data on the lease is lost."
    after = (
        "It is then queued again for the rest of its duration."
        if lease.requeue_when_preempted
        else "It is not queued again."
    )
    text = NOTICE_TEXT.format(
        name=lease.name, at=lease.reclaim_at, hook=hook, data=data, after=after, link=_link(lease)
    )
    _send(lease, f"{lease.name} ends at {lease.reclaim_at:%H:%M} UTC", text)


def send_withdrawal_email(lease: Lease) -> None:
    """E-mail the people concerned that a spot lease keeps running."""
    _send(lease, f"{lease.name} keeps running", WITHDRAWAL_TEXT.format(name=lease.name, link=_link(lease)))


def _send(lease: Lease, subject: str, text: str) -> None:
    for address in find_recipients(lease):
        mail.send_after_commit(to=address, subject=subject, text=text)


def _link(lease: Lease) -> str:
    return f"{settings.PUBLIC_URL.rstrip('/')}/leases/{lease.pk}/"
