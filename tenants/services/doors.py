"""Who is knocking: from a token or a signed-in user to tenant, actor and grants, in one round trip."""

import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ports import database
from tenants.domain.credentials import Credential
from tenants.domain.roles import Grant, Grants, Role
from tenants.models import ApiToken, Tenant
from tenants.services.actors import Actor

SESSION_TENANT = "tenant"  # where a session keeps which tenant is open
USE_IS_WRITTEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class Visitor:
    """Somebody let in: the present transaction sees the tenant's rows from here on."""

    tenant: Tenant
    actor: Actor
    grants: Grants
    token_id: str = ""
    tenants: tuple[tuple[str, str], ...] = ()  # (id, name) of every tenant this person belongs to
    is_authenticated: bool = True


def _grants(held: Iterable[tuple[str, list[str]]]) -> tuple[Grant, ...]:
    return tuple(Grant(Role(role), tuple(path)) for role, path in held)


def _tenant(row: dict[str, Any]) -> Tenant:
    return Tenant.from_db(
        "default",
        ["id", "name", "time_zone", "currency", "suspended_at", "version"],
        [row[n] for n in ("tenant_id", "tenant_name", "time_zone", "currency", "suspended_at", "version")],
    )


def _call(sql: str, arguments: list[Any]) -> dict[str, Any] | None:
    with database.prepared() as cursor:
        with database.batch():  # the request's BEGIN goes along
            cursor.execute(sql, arguments)
        row = cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
    return dict(zip(names, row, strict=True)) if row else None


def by_token(credential: Credential, *, request_id: str, now: datetime) -> Visitor | None:
    """Let the bearer of a token in; None when it is unknown, expired, revoked or its bearer has left."""
    row = _call("SELECT * FROM knock_with_token(%s, %s, %s)", [credential.prefix, credential.digest, now])
    if row is None or not hmac.compare_digest(row["digest"], credential.digest):
        return None
    if row["last_used_at"] is None or now - row["last_used_at"] >= USE_IS_WRITTEN_EVERY:
        _note_use(row["token_id"], now=now)
    return Visitor(
        tenant=_tenant(row),
        actor=Actor(row["bearer_kind"], row["bearer_id"], row["bearer_label"], request_id, row["token_id"]),
        grants=Grants(_grants(json.loads(row["grants"])), frozenset(row["scopes"]), tuple(row["within"])),
        token_id=row["token_id"],
    )


def by_user(user_id: str, label: str, *, wanted: str, request_id: str) -> Visitor | None:
    """Let a signed-in person into the tenant they want, or the oldest they have; None without any."""
    row = _call("SELECT * FROM knock_with_user(%s, %s)", [user_id, wanted])
    if row is None:
        return None
    return Visitor(
        tenant=_tenant(row),
        actor=Actor("user", user_id, label, request_id),
        grants=Grants(_grants(json.loads(row["grants"]))),
        tenants=tuple((ident, name) for ident, name in json.loads(row["others"])),
    )


def _note_use(token_id: str, *, now: datetime) -> None:
    # Requests in parallel carry the same token: whoever finds the row taken leaves the note to the other.
    free = ApiToken.objects.filter(pk=token_id).select_for_update(skip_locked=True)
    ApiToken.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)
