"""PostgreSQL refuses changes to append-only tables, even by their owner."""

from contextlib import closing

import psycopg
import pytest

from tests.database import OwnDatabase

TABLES = {
    "tenants_auditevent": "who did what",
    "broker_transition": "the lives of leases, by which is charged",
    "broker_volumesizechange": "the lives of volumes, by which is charged",
    "billing_ratedcharge": "what was charged",
    "billing_invoiceadjustment": "what months came to beside their seconds",
    "broker_inventorychange": "since when a GPU or node was out of service, and who said so",
    "broker_repartitionlogentry": "how nodes were cut anew",
    "broker_relocationlogentry": "how leases were moved",
    "billing_quote": "which prices were promised",
    "billing_ledgeraccount": "between what is booked",
    "billing_ledgertransfer": "what was booked",
    "billing_ledgerseal": "what the books were when",
    "billing_bankreceiptpart": "what bank transfers paid",
    "billing_creditnote": "what of invoices was given back",
    "billing_dunningstep": "what was done about invoices that are overdue",
    "billing_disputestep": "what happened to disputes of charges",
    "billing_correctedinterval": "what corrections changed",
    "billing_creditnoteline": "of which of their lines",
    "billing_grant": "what credit was given",
    "billing_grantdraw": "what it paid",
    "billing_grantreturn": "what of that came back to it",
    "billing_grantexpiry": "what was left of it when it ended",
    "billing_storedbundle": "bundles of cancelled invoices",
    "billing_storeddocument": "papers as they were handed out",
    "billing_balancedraw": "what was settled from a tenant's balance",
    "billing_exchangerate": "at which rates invoices state their VAT",
}
TRIGGERS = """
SELECT c.relname, array_agg(DISTINCT t.tgname::text ORDER BY t.tgname::text)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE t.tgname LIKE 'append\\_only%' AND t.tgenabled = 'O' GROUP BY 1
"""
RIGHTS = """
SELECT grantee || ' may ' || privilege_type || ' ' || table_name FROM information_schema.role_table_grants
 WHERE table_name = ANY(%s) AND privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE') AND grantee <> 'gpubroker_owner'
"""


def test_append_only_tables_reject_changes_by_rights_and_by_triggers(
    own_database: OwnDatabase,
) -> None:
    with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as owner:
        found = {str(table): names for table, names in owner.execute(TRIGGERS)}
        assert found == {name: ["append_only", "append_only_truncate"] for name in TABLES}
        assert owner.execute(RIGHTS, [list(TABLES)]).fetchall() == []
        for table in TABLES:
            with pytest.raises(psycopg.DatabaseError, match=f"{table} is append-only: TRUNCATE refused"):
                owner.execute(f"TRUNCATE {table} CASCADE")


def test_the_owner_role_cannot_change_the_audit_log(own_database: OwnDatabase) -> None:
    with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as owner:
        owner.execute("SELECT set_config('app.tenant', 'ten_x', false)")
        owner.execute(
            "INSERT INTO tenants_auditevent (id, tenant_id, at, actor_kind, actor_id, actor_label, action, subject_id,"
            " subject_label, detail, request_id)"
            " VALUES ('aud_x', 'ten_x', now(), 'system', '', '', 'x', '', '', '{}', '')"
        )
        for attack in ("UPDATE tenants_auditevent SET action = 'y'", "DELETE FROM tenants_auditevent"):
            with pytest.raises(psycopg.DatabaseError, match="tenants_auditevent is append-only"):
                owner.execute(attack)
