"""Ways through the walls: whose rows a transaction may see. Each ends with its block.

A tenant is set by `set_config(…, true)` and a wider role by `SET LOCAL ROLE`, so both die with the
transaction and can never leak to the next user of the connection.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction


def _set_tenant(tenant_id: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('app.tenant', true), set_config('app.tenant', %s, true)", [tenant_id]
        )
        return cursor.fetchone()[0] or ""


def enter_tenant(tenant_id: str) -> None:
    """Let the rest of the present transaction see this tenant's rows, and no other's."""
    _set_tenant(tenant_id)


@contextmanager
def as_tenant(tenant_id: str) -> Iterator[None]:
    """Open a transaction that sees one tenant's rows."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        before = _set_tenant(tenant_id)
        yield
        if not outermost:  # else the commit ends it, without a round trip
            _set_tenant(before)


@contextmanager
def _as_role(role: str) -> Iterator[None]:
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        # The same as SET LOCAL ROLE, and it tells in one round trip what was before.
        cursor.execute("SELECT current_setting('role'), set_config('role', %s, true)", [role])
        before = cursor.fetchone()[0]
        yield
        if not outermost:
            cursor.execute("SELECT set_config('role', %s, true)", [before])


@contextmanager
def as_staff() -> Iterator[None]:
    """Read every tenant's rows as an operator; writing goes through `as_tenant`. Callers audit."""
    with _as_role("gpubroker_staff"):
        yield


@contextmanager
def as_itself() -> Iterator[None]:
    """Go back to the product's own login where a page around reads as staff, to write through `as_tenant`."""
    with _as_role("none"):
        yield


@contextmanager
def as_sweep() -> Iterator[None]:
    """Read ids across tenants, to find work; the work itself runs through `as_tenant`."""
    with _as_role("gpubroker_sweep"):
        yield


@contextmanager
def as_shard(tenants: Sequence[str]) -> Iterator[None]:
    """Do the same for many tenants at once: read as the sweep does, and write what it may for these and nobody else.

    Which tables that is, billing's migration 0055 says.
    """
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('app.tenants', true), set_config('app.tenants', %s, true)",
            [",".join(tenants)],
        )
        before = cursor.fetchone()[0] or ""
        yield
        cursor.execute("SELECT set_config('app.tenants', %s, true)", [before])


@contextmanager
def as_door() -> Iterator[None]:
    """Look up who is knocking (tokens, memberships, invitations) before any tenant is known."""
    with _as_role("gpubroker_door"):
        yield
