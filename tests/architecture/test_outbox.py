"""Rights and triggers of the Stripe outbox tables."""

from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.database import OwnDatabase

RIGHTS = """
SELECT table_name, privilege_type FROM information_schema.role_table_grants
 WHERE grantee = %s AND table_name IN ('billing_stripecommand', 'billing_stripecharge')
"""
TENANT = """
SELECT set_config('app.tenant', 'ten_x', false);
INSERT INTO tenants_tenant (id, name, created_at, currency, time_zone, version)
VALUES ('ten_x', 'x', now(), 'EUR', 'UTC', 1)
"""
COMMAND = """
INSERT INTO billing_stripecommand (tenant_id, subject, step, round, attempt, params, idem, state, sent, answer)
VALUES ('ten_x', 'pay_x', 'pay', 0, 0, '{}', 'key', %s, 0, '')
"""
CHARGE = """
INSERT INTO billing_stripecharge (id, tenant_id, minor, currency, sent_minor, customer_id, card_id, card, stripe_id,
                                  round, outcome, code, reason, made_at)
VALUES ('pay_x', 'ten_x', 5, 'EUR', 5, '', '', '', '', 0, 'open', '', '', now())
"""


def test_the_web_role_can_only_read_stripe_commands(own_database: OwnDatabase) -> None:
    with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as owner:
        assert {right for _, right in owner.execute(RIGHTS, ["gpubroker_web"])} == {"SELECT"}
        worker = {right for _, right in owner.execute(RIGHTS, ["gpubroker_worker"])}
    assert {"SELECT", "INSERT", "UPDATE"} <= worker
    assert not {"DELETE", "TRUNCATE"} & worker
    with closing(psycopg.connect(own_database.web_url, autocommit=True)) as web:
        for attack in (
            "UPDATE billing_stripecommand SET params = ''",
            "UPDATE billing_stripecharge SET minor = 1",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                web.execute(attack)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("done", {"answer": "another"}),
        ("new", {"params": "another"}),
        ("new", {"subject": "another"}),
        ("new", {"step": "void"}),
        ("unknown_outcome", {"idem": "another"}),
        ("unknown_outcome", {"attempt": 1}),
        ("unknown_outcome", {"attempt": 2, "idem": "another"}),
    ],
)
def test_a_stripe_command_cannot_be_changed_after_creation(
    own_database: OwnDatabase, state: str, change: dict[str, Any]
) -> None:
    with closing(psycopg.connect(own_database.worker_url, autocommit=True)) as worker:
        _planted(own_database, worker, state)
        sets = ", ".join(f"{name} = %s" for name in change)
        with pytest.raises(psycopg.DatabaseError, match="stays what it is"):
            worker.execute(f"UPDATE billing_stripecommand SET {sets}", list(change.values()))


def test_a_stripe_command_can_get_a_new_key_and_completes_once(own_database: OwnDatabase) -> None:
    with closing(psycopg.connect(own_database.worker_url, autocommit=True)) as worker:
        _planted(own_database, worker, "unknown_outcome")
        worker.execute("UPDATE billing_stripecommand SET attempt = 1, idem = 'another', state = 'new'")
        worker.execute("UPDATE billing_stripecommand SET state = 'done', answer = 'it is'")
        with pytest.raises(psycopg.DatabaseError, match="stays what it is"):
            worker.execute("UPDATE billing_stripecommand SET answer = 'it is not'")


def test_stripe_outbox_tables_cannot_be_truncated(own_database: OwnDatabase) -> None:
    with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as owner:
        for table in ("billing_stripecommand", "billing_stripecharge"):
            with pytest.raises(psycopg.DatabaseError, match="TRUNCATE refused"):
                owner.execute(f"TRUNCATE {table} CASCADE")


def _planted(database: OwnDatabase, worker: psycopg.Connection[Any], state: str) -> None:
    worker.execute("SELECT set_config('app.tenant', 'ten_x', false)")
    with closing(psycopg.connect(database.owner_url, autocommit=True)) as owner:
        owner.execute(TENANT)
    worker.execute(CHARGE)
    worker.execute(COMMAND, [state])
