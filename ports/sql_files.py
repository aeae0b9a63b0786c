"""Read the `.sql` files that a migration applies."""

from pathlib import Path

from django.db.migrations import RunSQL


def run_sql_files(migration: str, *names: str) -> list[RunSQL]:
    """Return operations that apply `sql/` files beside a migration, and undo by `reverse.sql`."""
    folder = Path(migration).parent / "sql"
    # Operations are undone from the last to the first, so the reverse of all files belongs to the first.
    undo = RunSQL(RunSQL.noop, (folder / "reverse.sql").read_text())
    return [undo, *(RunSQL((folder / f"{name}.sql").read_text(), RunSQL.noop) for name in names)]
