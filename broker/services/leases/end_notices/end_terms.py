"""What happens at a lease's end: automatic extension, and an e-mail when it is over."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Lease
from broker.services.leases.extension_limits import check_automatic_extension
from broker.services.leases.lifecycle.extension import ENDING_OR_ENDED
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from tenants.services import audit
from tenants.services.actors import Actor


@transaction.atomic
def set_end_terms(
    lease: Lease,
    *,
    extend_by_s: int | None = None,
    extend_limit_s: int | None = None,
    notify_on_end: bool | None = None,
    actor: Actor,
    now: datetime,
) -> Lease:
    """Change what happens at the end of a lease that is not over."""
    lease = Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    wanted = {"extend_by_s": extend_by_s, "extend_limit_s": extend_limit_s, "notify_on_end": notify_on_end}
    changed = {name: value for name, value in wanted.items() if value not in (None, getattr(lease, name))}
    if not changed:
        return lease
    if lease.state in ENDING_OR_ENDED:
        raise LeaseAlreadyOver(f"{lease.name} is {lease.state}; its end cannot be changed.", fix="Launch a new one.")
    before = {name: getattr(lease, name) for name in changed}
    for name, value in changed.items():
        setattr(lease, name, value)
    lease.extend_with_token = actor.token if lease.automatic_extension.is_on else ""
    if changed.keys() & {"extend_by_s", "extend_limit_s"}:
        check_automatic_extension(
            lease.automatic_extension, max_duration_s=lease.max_duration_s, end_date=lease.end_date
        )
    lease.version = F("version") + 1
    lease.save(update_fields=[*changed, "extend_with_token", "version"])
    lease.refresh_from_db(fields=["version"])
    audit.record("lease.end_terms", lease, actor=actor, now=now, before=before, after=changed)
    return lease
