"""PostgreSQL alone separates tenants' rows, without any filter of the application."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, ProgrammingError, connection, models, transaction
from django.test import Client

from deploy.embedded.roles import WORKER
from tenants.models import Project
from tenants.services import rls
from tests.architecture.samples import WITHOUT_TENANT_POLICY, column_of, sample, tenant_models
from tests.database import logged_in_as
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner

ids = [model._meta.label for model in tenant_models()]


@pytest.fixture(autouse=True, scope="module")
def _worker(template_database: str) -> Iterator[None]:
    """Use the worker's role, which has the rights of all login roles."""
    with logged_in_as(WORKER):
        yield


@pytest.fixture
def both(db: None) -> tuple[TenantWithOwner, TenantWithOwner]:
    return tenant_setup.create_tenant_with_owner("Delta"), tenant_setup.create_tenant_with_owner("Zanzibar")


def rows_of(sql: str, *arguments: object) -> int:
    """Return the number of rows of a statement; 0 without the right."""
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return cursor.fetchone()[0] if sql.startswith("SELECT") else cursor.rowcount


@pytest.fixture(params=tenant_models(), ids=ids)
def planted(
    request: pytest.FixtureRequest, both: tuple[TenantWithOwner, TenantWithOwner]
) -> Iterator[type[models.Model]]:
    """Insert one row per tenant; foreign keys are never checked."""
    model = request.param
    for number, world in enumerate(both):
        with rls.tenant_scope(world.tenant.pk):
            if column_of(model) != "id":
                sample(model, world.tenant.pk, number=number).save(force_insert=True)
    yield model
    with connection.cursor() as cursor:
        # What dangles must not be looked at when the test's transaction ends.
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    transaction.set_rollback(True)


def test_a_connection_without_a_tenant_sees_no_rows(planted: type[models.Model]) -> None:
    tenant_setup.leave_tenant()
    assert planted._base_manager.count() == 0


def test_a_tenant_sees_only_its_own_rows(
    planted: type[models.Model], both: tuple[TenantWithOwner, TenantWithOwner]
) -> None:
    column = column_of(planted)
    for here, there in (both, both[::-1]):
        with rls.tenant_scope(here.tenant.pk):
            seen = set(planted._base_manager.values_list(column, flat=True))
            assert seen == {here.tenant.pk}
            table = planted._meta.db_table
            assert rows_of(f"SELECT count(*) FROM {table} WHERE {column} = %s", there.tenant.pk) == 0


def test_a_tenant_cannot_change_or_delete_anothers_rows(
    planted: type[models.Model], both: tuple[TenantWithOwner, TenantWithOwner]
) -> None:
    here, there = both
    table, column = planted._meta.db_table, column_of(planted)
    for sql in (
        f"UPDATE {table} SET {column} = {column} WHERE {column} = %s",
        f"DELETE FROM {table} WHERE {column} = %s",
        f"UPDATE {table} SET {column} = {column} WHERE {column} = %s OR true",
    ):
        with rls.tenant_scope(here.tenant.pk):
            before = rows_of(f"SELECT count(*) FROM {table}")
            try:
                with transaction.atomic():
                    changed = rows_of(sql, there.tenant.pk)
                    transaction.set_rollback(True)
            except DatabaseError:
                changed = 0  # append-only: nobody may
            assert changed <= (before if "OR true" in sql else 0)
    with rls.tenant_scope(there.tenant.pk):
        assert planted._base_manager.exists()


def test_a_tenant_cannot_write_a_row_for_another(
    planted: type[models.Model], both: tuple[TenantWithOwner, TenantWithOwner]
) -> None:
    here, there = both
    with rls.tenant_scope(there.tenant.pk):
        foreign = sample(planted, there.tenant.pk, number=7)
    with rls.tenant_scope(here.tenant.pk):
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            foreign.save(force_insert=True)
        table, column = planted._meta.db_table, column_of(planted)
        refused = pytest.raises(DatabaseError, match=r"row-level security|append-only|permission denied")
        with refused, transaction.atomic():
            rows_of(f"UPDATE {table} SET {column} = %s", there.tenant.pk)


def test_the_sample_covers_every_table_with_a_tenant(both: tuple[TenantWithOwner, TenantWithOwner]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns JOIN information_schema.tables"
            " USING (table_schema, table_name)"
            " WHERE table_schema = 'public' AND column_name = 'tenant_id' AND table_type = 'BASE TABLE'"
        )
        tables = {row[0] for row in cursor.fetchall()}
    assert tables - {model._meta.db_table for model in tenant_models()} == set(WITHOUT_TENANT_POLICY)


def test_a_connection_keeps_no_tenant_after_its_transaction(own_database: object) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    assert tenant_setup.ApiClient(delta.token()).send("GET", "projects").status_code == 200
    assert Project.objects.count() == 0
    browser = Client()
    browser.force_login(delta.owner)
    assert b"Delta" in browser.get("/projects/").content
    assert Project.objects.count() == 0
    with rls.tenant_scope(delta.tenant.pk):
        assert Project.objects.count() == 1
    assert Project.objects.count() == 0
