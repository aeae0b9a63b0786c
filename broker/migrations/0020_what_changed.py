"""What placement keeps in memory learns what changed since it last looked: each row says which transaction wrote it.

A row's number is that of the transaction that last changed what placement reads of it; whoever was deleted is told by
the row above it, which is looked at again.
"""

from django.db import migrations

from tenants.models.walls import handed

NUMBERS = """
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.xid := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;
CREATE FUNCTION note_place_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE broker_gpu SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.gpu_id;
  RETURN NULL;
END $$;
CREATE FUNCTION note_card_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE broker_node SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.node_id;
  RETURN NULL;
END $$;
"""
UNNUMBERED = "DROP FUNCTION note_card_gone(); DROP FUNCTION note_place_gone(); DROP FUNCTION note_change();"
# By table, what placement reads of it: a change of anything else is none of its business.
READ = {
    "allocation": ("gpu_id", "placement", "profile", "isolation", "released_at"),
    "gpu": (
        "node_id",
        "index",
        "gpu_model_id",
        "layout_policy",
        "fixed_layout",
        "health",
        "closed_since",
        "xid",
    ),
    "node": ("cluster_id", "name", "state", "xid"),
    "cluster": ("name", "region", "driver", "silent_since", "frozen", "shares_soft_cards", "recuts"),
}
GONE = """
CREATE TRIGGER gone AFTER DELETE ON broker_allocation FOR EACH ROW EXECUTE FUNCTION note_place_gone();
CREATE TRIGGER gone AFTER DELETE ON broker_gpu FOR EACH ROW EXECUTE FUNCTION note_card_gone();
"""
# Everyone may know that something about a card changed, nobody whose place it was.
VIEW = """
CREATE VIEW broker_placechange AS SELECT gpu_id, xid FROM broker_allocation;
GRANT SELECT ON broker_placechange TO gpubroker_web, gpubroker_worker, gpubroker_staff;
"""
NO_VIEW = """
SET LOCAL ROLE gpubroker_sweep;  -- only whoever owns it may drop it
DROP VIEW broker_placechange;
RESET ROLE;
"""


def numbered(table: str) -> migrations.RunSQL:
    name = f"broker_{table}"
    was, is_ = (", ".join(f"{row}.{column}" for column in READ[table]) for row in ("OLD", "NEW"))
    return migrations.RunSQL(
        f"""
        ALTER TABLE {name} ADD COLUMN xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
        CREATE INDEX {table}_changed ON {name} (xid);
        CREATE TRIGGER changed BEFORE UPDATE ON {name} FOR EACH ROW
          WHEN (({was}) IS DISTINCT FROM ({is_})) EXECUTE FUNCTION note_change();
        """,
        f"DROP TRIGGER changed ON {name}; DROP INDEX {table}_changed; ALTER TABLE {name} DROP COLUMN xid;",
    )


class Migration(migrations.Migration):
    dependencies = [("broker", "0019_ended_lately")]
    operations = [
        migrations.RunSQL(NUMBERS, UNNUMBERED),
        *(numbered(table) for table in READ),
        migrations.RunSQL(GONE, "DROP TRIGGER gone ON broker_gpu; DROP TRIGGER gone ON broker_allocation;"),
        migrations.RunSQL(VIEW + handed("VIEW broker_placechange", to="gpubroker_sweep"), NO_VIEW),
    ]
