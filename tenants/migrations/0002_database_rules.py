"""Add row-level security, the credential lookup, and the refusal to change the audit trail."""

from django.db import migrations

from ports.sql_files import run_sql_files


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]
    operations = run_sql_files(
        __file__,
        "append_only",
        "row_level_security",
        "credential_lookup",
        "cache",
        "indexes",
    )
