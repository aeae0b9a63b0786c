"""Tenants: made with their root project and first owner, renamed, suspended."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from ports import ids
from tenants.domain import zones
from tenants.domain.roles import Role
from tenants.models import Member, Project, Quota, QuotaKind, Tenant, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused, Stale
from tenants.services.walls import enter_tenant


class CurrencyStays(Refused):
    code, status, title = "currency-stays", 409, "The currency cannot change any more"


def _zone(name: str) -> str:
    if why := zones.refusal(name):
        raise Invalid("time_zone", why, fix="Use the nearest city, such as Europe/Berlin, or UTC.")
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
) -> tuple[Tenant, Project]:
    """Make a tenant with its root project, first quota and owner; the transaction is inside it afterwards."""
    tenant = Tenant(
        pk=ids.new("ten"),
        name=name,
        time_zone=_zone(time_zone),
        currency=currency or settings.CURRENCY,
        created_at=now,
    )
    enter_tenant(tenant.pk)
    tenant.save(force_insert=True)
    root = Project(pk=ids.new("prj"), tenant=tenant, name=name, created_at=now)
    root.path = [root.pk]
    root.save(force_insert=True)
    first = settings.NEW_TENANT_UNITS * 1000
    Quota.objects.create(tenant=tenant, project=root, kind=QuotaKind.UNITS, limit=first, soft_limit=first)
    if owner is not None:
        Member.objects.create(tenant=tenant, user=owner, role=Role.OWNER, created_at=now)
    audit.record(
        "tenant.create", actor=actor, now=now, tenant_id=tenant.pk, subject_id=tenant.pk, subject_label=name
    )
    return tenant, root


@transaction.atomic
def change(tenant: Tenant, *, actor: Actor, now: datetime, **wanted: Any) -> Tenant:
    """Rename a tenant or move it to another time zone; months already begun keep their borders."""
    differs = {field: value for field, value in wanted.items() if getattr(tenant, field) != value}
    if not differs:
        return tenant
    if "time_zone" in differs:
        _zone(differs["time_zone"])
    before = {field: getattr(tenant, field) for field in differs}
    if not _update(tenant, differs):
        raise Stale("The tenant was changed in the meantime.", fix="Read it again, then change it.")
    tenant.refresh_from_db()
    audit.record(
        "tenant.change",
        actor=actor,
        now=now,
        tenant_id=tenant.pk,
        subject_id=tenant.pk,
        subject_label=tenant.name,
        before=before,
        after=differs,
    )
    return tenant


def _update(tenant: Tenant, differs: dict[str, Any]) -> int:
    rows = Tenant.objects.filter(pk=tenant.pk, version=tenant.version)
    try:
        with transaction.atomic():
            return rows.update(version=F("version") + 1, **differs)
    except IntegrityError as error:
        said = getattr(error.__cause__, "diag", None)
        if said is None or said.constraint_name != "tenant_currency_stays":
            raise
        raise CurrencyStays(
            f"{tenant.name} used something that is charged in {tenant.currency}, or agreed on something in it.",
            fix="Make another tenant for the other currency.",
        ) from None


@transaction.atomic
def suspend(tenant: Tenant, *, actor: Actor, now: datetime, why: str) -> None:
    """Let a tenant look but change nothing; what runs goes on until somebody ends it."""
    _suspension(tenant, "tenant.suspend", at=now, actor=actor, now=now, why=why)


@transaction.atomic
def resume(tenant: Tenant, *, actor: Actor, now: datetime, why: str) -> None:
    """Let a suspended tenant work again."""
    _suspension(tenant, "tenant.resume", at=None, actor=actor, now=now, why=why)


def _suspension(
    tenant: Tenant, action: str, *, at: datetime | None, actor: Actor, now: datetime, why: str
) -> None:
    rows = Tenant.objects.filter(pk=tenant.pk, suspended_at__isnull=at is not None)
    if rows.update(suspended_at=at, version=F("version") + 1):
        tenant.suspended_at = at
        audit.record(
            action,
            actor=actor,
            now=now,
            tenant_id=tenant.pk,
            subject_id=tenant.pk,
            subject_label=tenant.name,
            why=why,
        )


def lock(tenant: Tenant) -> None:
    """Hold the tenant's row: the first lock of every change that must see the whole tenant."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM tenants_tenant WHERE id = %s FOR NO KEY UPDATE", [tenant.pk])
