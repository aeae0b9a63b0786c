"""SQL of the second wall: row-level security and append-only tables, for migrations of every app."""

from django.db.migrations import RunSQL

CURRENT = "(SELECT nullif(current_setting('app.tenant', true), ''))"


def tenant_wall(table: str, *, column: str = "tenant_id", door: bool = False) -> RunSQL:
    """Guard a tenant's table: rows are seen and written only under their own `app.tenant`.

    Staff and sweep may read across tenants; `door` adds the role that looks up who is knocking.
    FORCE binds the owner too, so a backfill goes tenant by tenant.
    """
    readers = "gpubroker_staff, gpubroker_sweep" + (", gpubroker_door" if door else "")
    return RunSQL(
        f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY tenant_wall ON {table}
          USING ({column} = {CURRENT}) WITH CHECK ({column} = {CURRENT});
        CREATE POLICY readers ON {table} FOR SELECT TO {readers} USING (true);
        """,
        f"""
        DROP POLICY readers ON {table};
        DROP POLICY tenant_wall ON {table};
        ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


def append_only(table: str) -> RunSQL:
    """Let rows only be added: UPDATE, DELETE and TRUNCATE are refused, also to the owner."""
    return RunSQL(
        f"""
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
          FOR EACH ROW EXECUTE FUNCTION refuse_change();
        CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
        REVOKE UPDATE, DELETE ON {table} FROM gpubroker_web, gpubroker_worker;
        """,
        f"""
        GRANT UPDATE, DELETE ON {table} TO gpubroker_web, gpubroker_worker;
        DROP TRIGGER append_only_truncate ON {table};
        DROP TRIGGER append_only ON {table};
        """,
    )


def handed(what: str, *, to: str) -> str:
    """Give a view or a function to a role, which then may create nothing of its own."""
    return f"""
        GRANT CREATE ON SCHEMA public TO {to};  -- PostgreSQL asks it of whoever shall own something there
        ALTER {what} OWNER TO {to};
        REVOKE CREATE ON SCHEMA public FROM {to};
        """


REFUSE_CHANGE = RunSQL(
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
    END $$;
    """,
    "DROP FUNCTION refuse_change();",
)
