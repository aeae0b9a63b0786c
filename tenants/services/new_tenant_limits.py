"""Limits of new tenants: how many a person has, what these hold together.

They apply until an operator releases the tenant. A person is a mailbox, however its address is written; whoever may
launch in a new tenant counts as having it, so that invitations gather nothing.
"""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import connection

from ports.postgres.sql_statements import load_sql
from tenants.domain.roles import ALLOWED, Role
from tenants.models import Tenant, User
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope

LOCK_SQL = "SELECT pg_advisory_xact_lock(7, hashtext(%s))"
LAUNCHING_ROLES = sorted(role.value for role in Role if "leases.write" in ALLOWED[role])
ASK_OPERATORS = "Ask the operators of this installation to release one of them."


class NewTenantLimit(ProblemError):
    """A person or network has, or holds, as much as new tenants may."""

    code, status, title = "new-tenant-limit", 409, "The limit of new tenants is reached"


def require_may_found(mailbox: str, network: str) -> None:
    """Raise NewTenantLimit if a person or network has too many new tenants to create another.

    Others of the same person or network wait until this transaction ends.
    """
    _lock([mailbox, network])
    if _owned_by(mailbox) >= settings.NEW_TENANTS_PER_PERSON:
        raise _too_many_of_person()
    with system_scope():
        near = Tenant.objects.filter(founder_network=network, released_at=None).count() if network else 0
    if near >= settings.NEW_TENANTS_PER_NETWORK:
        raise NewTenantLimit(
            f"{near} new tenants were created from your network address; more are not allowed until operators have"
            " released them.",
            fix=ASK_OPERATORS,
        )


def require_may_own(tenant: Tenant, user: User) -> None:
    """Raise NewTenantLimit if a user would own too many new tenants with this one."""
    if not tenant.is_new or not user.mailbox:
        return
    _lock([user.mailbox])
    if _owned_by(user.mailbox) > settings.NEW_TENANTS_PER_PERSON:
        raise _too_many_of_person()


def check_held_units(tenant_id: str) -> None:
    """Raise NewTenantLimit if those of a new tenant hold too much in all.

    That is each person who may launch in it, and the network it was created from. Called once the quota of a lease
    was taken; others of the same people wait until this transaction ends.
    """
    with system_scope(), connection.cursor() as cursor:
        values: dict[str, Any] = {"tenant": tenant_id, "roles": LAUNCHING_ROLES}
        cursor.execute(load_sql("tenants/new_tenants/people"), values)
        found = cursor.fetchall()
        mailboxes, networks = ([name for name, is_network in found if is_network is kind] for kind in (False, True))
        _lock([*mailboxes, *networks])
        cursor.execute(
            load_sql("tenants/new_tenants/held_units"), {**values, "mailboxes": mailboxes, "networks": networks}
        )
        held = cursor.fetchall()
    for is_network, milli_units in held:
        most = settings.NEW_TENANT_UNITS_PER_NETWORK if is_network else settings.NEW_TENANT_UNITS_PER_PERSON
        if milli_units > most * 1000:
            whose = "The new tenants from your network address" if is_network else "Your new tenants"
            raise NewTenantLimit(
                f"{whose} may hold {most} units together until operators have released them, and would hold"
                f" {milli_units / 1000:g}.",
                fix=f"Release a lease, or choose a smaller slice. {ASK_OPERATORS}",
            )


def _owned_by(mailbox: str) -> int:
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(load_sql("tenants/new_tenants/owned_tenants"), {"mailbox": mailbox})
        return int(cursor.fetchone()[0])


def _lock(names: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for name in sorted({name for name in names if name}):
            cursor.execute(LOCK_SQL, [name])


def _too_many_of_person() -> NewTenantLimit:
    most = settings.NEW_TENANTS_PER_PERSON
    many = "one new tenant" if most == 1 else f"{most} new tenants"
    return NewTenantLimit(f"A person may have {many} until operators have released it.", fix=ASK_OPERATORS)
