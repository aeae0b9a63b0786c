"""Add row-level security, views across tenants, chained histories and change tracking."""

from django.db import migrations

from ports.sql_files import run_sql_files


class Migration(migrations.Migration):
    dependencies = [("broker", "0001_initial"), ("tenants", "0002_database_rules")]
    operations = run_sql_files(
        __file__,
        "constraints",
        "change_tracking",
        "views",
        "triggers",
        "append_only",
        "row_level_security",
        "indexes",
        "grants",
    )
