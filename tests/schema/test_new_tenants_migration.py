"""Migration 0006 of tenants: tenants of before are released, and people have mailboxes."""

import pytest
from django.core.management import call_command

from tests.database import OwnDatabase

TENANT = """
INSERT INTO tenants_tenant (id, name, time_zone, currency, created_at, version)
VALUES ('ten_1', 'Old', 'UTC', 'EUR', '2026-01-02T03:04:05Z', 1)
"""
USER = """
INSERT INTO tenants_user (id, password, email, name, is_active, is_staff) VALUES (%s, '', %s, '', true, false)
"""


@pytest.mark.deep
def test_tenants_of_before_are_released_and_people_have_mailboxes(own_database: OwnDatabase) -> None:
    call_command("migrate", "tenants", "0004", database="owner", interactive=False, verbosity=0)
    with own_database.server.as_administrator(own_database.name) as connection:
        connection.execute(TENANT)
        for number, email in enumerate(("ada+1@example.org", "+x@example.org")):
            connection.execute(USER, [f"usr_{number}", email])
        connection.commit()
    call_command("migrate", database="owner", interactive=False, verbosity=0)
    with own_database.server.as_administrator(own_database.name) as connection:
        tenants = connection.execute("SELECT released_at = created_at, founder FROM tenants_tenant").fetchall()
        boxes = connection.execute("SELECT mailbox FROM tenants_user ORDER BY id").fetchall()
        forced = connection.execute("SELECT relforcerowsecurity FROM pg_class WHERE relname = 'tenants_tenant'")
        assert forced.fetchone() == (True,)
    assert tenants == [(True, "")]
    assert boxes == [("ada@example.org",), ("+x@example.org",)]
