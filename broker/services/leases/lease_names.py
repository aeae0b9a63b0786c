"""The name and tags of a lease, which only people interpret."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from broker.models import Lease
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import StaleVersion


@transaction.atomic
def rename_lease(
    lease: Lease, *, name: str | None = None, tags: dict[str, str] | None = None, actor: Actor, now: datetime
) -> Lease:
    """Change a lease's name or tags; raise StaleVersion when it changed since it was read."""
    wanted: dict[str, Any] = {"name": name, "tags": tags}
    differs = {field: value for field, value in wanted.items() if value not in (None, getattr(lease, field))}
    if not differs:
        return lease
    before = {field: getattr(lease, field) for field in differs}
    moved = Lease.objects.filter(pk=lease.pk, version=lease.version)
    if not moved.update(version=F("version") + 1, **differs):
        raise StaleVersion("The lease changed in the meantime.", fix="Reload it, then change it.")
    for field, value in differs.items():
        setattr(lease, field, value)
    lease.version += 1
    audit.record("lease.rename", lease, actor=actor, now=now, before=before, after=differs)
    return lease
