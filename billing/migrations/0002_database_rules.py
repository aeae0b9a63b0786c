"""Add row-level security, and the rules that keep charges, books and invoices consistent."""

from django.db import migrations

from ports.sql_files import run_sql_files


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial"), ("broker", "0002_database_rules")]
    operations = run_sql_files(
        __file__,
        "constraints",
        "views",
        "triggers_prices",
        "triggers_invoices",
        "triggers_payments",
        "triggers_ledger",
        "triggers_credit_notes",
        "triggers_grants",
        "triggers_budgets",
        "triggers_terms",
        "triggers_disputes_and_corrections",
        "append_only",
        "row_level_security",
        "indexes",
        "grants",
    )
