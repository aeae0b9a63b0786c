"""Counts of requests for rate limits."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql" / "request_count.sql"


class Migration(migrations.Migration):
    """Add the table of shared counts."""

    dependencies = [("tenants", "0005_audit_of_operators")]

    operations = [migrations.RunSQL(SQL.read_text(), "DROP TABLE request_count")]
