"""Seats of live streams, which all events processes share."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql" / "stream_seats.sql"


class Migration(migrations.Migration):
    """Add the tables of events processes and of their streams."""

    dependencies = [("tenants", "0009_audit_changes_of_operators")]

    operations = [migrations.RunSQL(SQL.read_text(), "DROP TABLE stream_seats, stream_process")]
