"""Row-level security scopes: which tenants' rows a transaction sees and writes.

A tenant is set by `set_config(…, true)` and a wider role by `SET LOCAL ROLE`. Each scope ends with its
block, and both settings die with the transaction, so they never leak to the next user of the connection.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction


def _set_tenant(tenant_id: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenant', true), set_config('app.tenant', %s, true)", [tenant_id])
        return cursor.fetchone()[0] or ""


def enter_tenant(tenant_id: str) -> None:
    """Restrict the rest of the current transaction to this tenant's rows."""
    _set_tenant(tenant_id)


def enter_operator(user_id: str) -> None:
    """Let the rest of the current transaction see the stored responses of one operator."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.operator', %s, true)", [user_id])


@contextmanager
def tenant_scope(tenant_id: str) -> Iterator[None]:
    """Open a transaction that sees one tenant's rows."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        previous = _set_tenant(tenant_id)
        yield
        if not outermost:  # else the commit resets it, without a round trip
            _set_tenant(previous)


@contextmanager
def _role_scope(role: str, *, also: str = "") -> Iterator[None]:
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        # The same as SET LOCAL ROLE, but returns the previous role in the same round trip.
        cursor.execute(f"SELECT current_setting('role'), set_config('role', %s, true){also}", [role])
        previous = cursor.fetchone()[0]
        yield
        if not outermost:
            cursor.execute("SELECT set_config('role', %s, true)", [previous])


@contextmanager
def staff_scope() -> Iterator[None]:
    """Read every tenant's rows as an operator; callers write an audit event.

    Writing goes through `tenant_scope`.
    """
    # Few rows of all tenants are read by index, also where the server keeps PostgreSQL's cost of hard disks.
    with _role_scope("gpubroker_staff", also=", set_config('random_page_cost', '1.1', true)"):
        yield


@contextmanager
def login_role_scope() -> Iterator[None]:
    """Drop the staff role inside a staff scope, so that `tenant_scope` may write."""
    with _role_scope("none"):
        yield


@contextmanager
def system_scope() -> Iterator[None]:
    """Read ids across tenants, to find work; the work itself runs through `tenant_scope`."""
    with _role_scope("gpubroker_system"):
        yield


@contextmanager
def batch_scope(tenants: Sequence[str]) -> Iterator[None]:
    """Read across tenants and write rows of the given tenants only.

    Which tables may be written is listed in `billing/migrations/sql/row_level_security.sql`.
    """
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('app.tenants', true), set_config('app.tenants', %s, true)", [",".join(tenants)]
        )
        previous = cursor.fetchone()[0] or ""
        yield
        cursor.execute("SELECT set_config('app.tenants', %s, true)", [previous])


@contextmanager
def auth_scope() -> Iterator[None]:
    """Look up tokens, memberships and invitations before the tenant is known."""
    with _role_scope("gpubroker_auth"):
        yield
