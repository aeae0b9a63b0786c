"""Tenants: creating, renaming, suspending and resuming them."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from ports import ids
from tenants.domain import time_zones
from tenants.domain.roles import Role
from tenants.models import Member, Project, Quota, QuotaKind, Tenant, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError, StaleVersion
from tenants.services.rls import enter_tenant


class CurrencyFixed(ProblemError):
    code, status, title = "currency-locked", 409, "The currency can no longer be changed"


def _valid_time_zone(name: str) -> str:
    if why := time_zones.time_zone_error(name):
        raise InvalidValue("time_zone", why, fix="Use the nearest city, such as Europe/Berlin, or UTC.")
    return name


@transaction.atomic
def create(
    *,
    name: str,
    owner: User | None,
    actor: Actor,
    now: datetime,
    time_zone: str = "UTC",
    currency: str | None = None,
    released: bool = True,
    founder: str = "",
    founder_network: str = "",
) -> tuple[Tenant, Project]:
    """Create a tenant with its root project, first quota and owner.

    One that is not released has the limits of new tenants. The transaction is scoped to that tenant afterwards.
    """
    tenant = Tenant(
        pk=ids.new("ten"),
        name=name,
        time_zone=_valid_time_zone(time_zone),
        currency=currency or settings.CURRENCY,
        created_at=now,
        released_at=now if released else None,
        founder=founder,
        founder_network=founder_network,
    )
    enter_tenant(tenant.pk)
    tenant.save(force_insert=True)
    root = Project(pk=ids.new("prj"), tenant=tenant, name=name, created_at=now)
    root.path = [root.pk]
    root.save(force_insert=True)
    first = settings.DEFAULT_TENANT_QUOTA_UNITS * 1000
    Quota.objects.create(tenant=tenant, project=root, kind=QuotaKind.UNITS, limit=first, soft_limit=first)
    if owner is not None:
        Member.objects.create(tenant=tenant, user=owner, role=Role.OWNER, created_at=now)
    audit.record("tenant.create", tenant, actor=actor, now=now)
    return tenant, root


@transaction.atomic
def change(tenant: Tenant, *, actor: Actor, now: datetime, **wanted: Any) -> Tenant:
    """Change a tenant's name, time zone or currency.

    Months that have begun keep their boundaries.
    """
    differs = {field: value for field, value in wanted.items() if getattr(tenant, field) != value}
    if not differs:
        return tenant
    if "time_zone" in differs:
        _valid_time_zone(differs["time_zone"])
    before = {field: getattr(tenant, field) for field in differs}
    if not _update(tenant, differs):
        raise StaleVersion("The tenant was changed in the meantime.", fix="Reload it, then change it.")
    tenant.refresh_from_db()
    audit.record("tenant.change", tenant, actor=actor, now=now, before=before, after=differs)
    return tenant


def _update(tenant: Tenant, differs: dict[str, Any]) -> int:
    rows = Tenant.objects.filter(pk=tenant.pk, version=tenant.version)
    try:
        with transaction.atomic():
            return rows.update(version=F("version") + 1, **differs)
    except IntegrityError as error:
        diagnostics = getattr(error.__cause__, "diag", None)
        if diagnostics is None or diagnostics.constraint_name != "tenant_currency_stays":
            raise
        raise CurrencyFixed(
            f"{tenant.name} already has charges or agreements in {tenant.currency}.",
            fix="Create another tenant for the other currency.",
        ) from None


@transaction.atomic
def suspend(tenant: Tenant, *, actor: Actor, now: datetime, why: str) -> None:
    """Make a tenant read-only; running leases go on until they are ended."""
    _set_suspended(tenant, "tenant.suspend", at=now, actor=actor, now=now, why=why)


@transaction.atomic
def resume(tenant: Tenant, *, actor: Actor, now: datetime, why: str) -> None:
    """Lift a tenant's suspension."""
    _set_suspended(tenant, "tenant.resume", at=None, actor=actor, now=now, why=why)


def _set_suspended(tenant: Tenant, action: str, *, at: datetime | None, actor: Actor, now: datetime, why: str) -> None:
    rows = Tenant.objects.filter(pk=tenant.pk, suspended_at__isnull=at is not None)
    if rows.update(suspended_at=at, version=F("version") + 1):
        tenant.suspended_at = at
        audit.record(action, tenant, actor=actor, now=now, why=why)


def lock(tenant: Tenant) -> None:
    """Lock the tenant's row: the first lock of every change that concerns the whole tenant."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM tenants_tenant WHERE id = %s FOR NO KEY UPDATE", [tenant.pk])
