"""A lease that is looked at: its hold, opened at the first look, what it used, and what it may still come to."""

from dataclasses import dataclass
from datetime import datetime

from billing.models.keys import hold_id
from billing.services.funds.needs import NO_USE, Outlook, Use, uses
from billing.services.statements import statement
from broker.models import Lease
from ports import database


@dataclass(frozen=True, slots=True)
class Held:
    """A hold: of which tenant, until when its wallet covers it (None where that was not asked), and if it is new."""

    id: str
    tenant_id: str
    covers_until: datetime | None
    new: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a lease while one transaction looks at it."""

    lease: Lease
    hold: Held
    use: Use
    outlook: Outlook


def use_of(lease: Lease) -> Use:
    """Return what a lease used, without a query where it is not written yet."""
    return NO_USE if lease._state.adding else uses([lease.pk]).get(lease.pk, NO_USE)


def look_at(lease: Lease, use: Use | None = None, *, now: datetime) -> Look:
    """Open the hold of a lease, or look at it again: what was settled of it is not settled any longer."""
    tenant = lease.project.tenant
    asked = {
        "tenant": tenant.pk,
        "id": hold_id(),
        "lease": lease.pk,
        "currency": tenant.currency,
        "now": now,
        "seq": lease.seq,
    }
    ((key, covers_until, new),) = database.rows(statement("hold_open"), asked)
    hold = Held(key, tenant.pk, covers_until, new)
    return Look(lease, hold, use_of(lease) if use is None else use, Outlook(tenant, [lease]))
