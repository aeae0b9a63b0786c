"""Only migrations create tables, views and functions, as the owner."""

from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction

pytestmark = pytest.mark.django_db

WIDER = ("gpubroker_staff", "gpubroker_system", "gpubroker_auth")
CREATIONS = (
    "CREATE TABLE made_up (id int)",
    "CREATE TEMPORARY TABLE made_up (id int)",
    "CREATE VIEW made_up AS SELECT 1",
    "CREATE FUNCTION made_up() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE VIEW broker_waiting AS SELECT * FROM broker_lease",
    "CREATE SCHEMA made_up",
)


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_no_role_but_the_owner_may_create_in_any_schema() -> None:
    able = rows(
        "SELECT r.rolname, n.nspname FROM pg_roles r CROSS JOIN pg_namespace n"
        " WHERE r.rolname LIKE 'gpubroker\\_%' AND NOT r.rolsuper AND n.nspname NOT LIKE 'pg\\_t%'"
        " AND has_schema_privilege(r.oid, n.oid, 'CREATE')"
    )
    assert able == [("gpubroker_owner", "public")]


def test_no_role_but_the_owner_may_create_in_the_database() -> None:
    able = rows(
        "SELECT DISTINCT r.rolname FROM pg_roles r WHERE r.rolname LIKE 'gpubroker\\_%' AND NOT r.rolsuper"
        " AND has_database_privilege(r.oid, current_database(), 'CREATE, TEMPORARY')"
    )
    assert able == [("gpubroker_owner",)]


@pytest.mark.parametrize("role", ["gpubroker_web", *WIDER])
@pytest.mark.parametrize("creation", CREATIONS)
def test_login_roles_of_the_product_cannot_create_objects(role: str, creation: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('role', %s, true)", [role])
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            cursor.execute(creation)
