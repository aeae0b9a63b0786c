"""What may be written for many tenants at once, where months are closed in sets (decision 0046).

The sweep reads through the walls; it writes only for tenants that the transaction has named, as `app.tenant` does it
for one, and only what the end of a month writes.
"""

from django.db import migrations

SHARD = "tenant_id = ANY ((SELECT string_to_array(current_setting('app.tenants', true), ','))::text[])"
WRITTEN = {
    "billing_billingperiod": "INSERT, UPDATE",
    "billing_invoice": "INSERT, UPDATE",
    "billing_invoiceline": "INSERT, UPDATE",
    "billing_invoicetax": "INSERT, UPDATE, DELETE",
    "billing_ledgeraccount": "INSERT",
    "billing_ledgertransfer": "INSERT",
    "billing_letter": "INSERT",
    "tenants_auditevent": "INSERT",
}
FORWARD = "".join(
    f"GRANT {verbs} ON {table} TO gpubroker_sweep;"
    f" CREATE POLICY shard ON {table} TO gpubroker_sweep USING ({SHARD}) WITH CHECK ({SHARD});"
    for table, verbs in WRITTEN.items()
)
BACK = "".join(
    f"DROP POLICY shard ON {table}; REVOKE {verbs} ON {table} FROM gpubroker_sweep;"
    for table, verbs in WRITTEN.items()
)
SHARED = """
GRANT INSERT, UPDATE ON billing_invoiceseries TO gpubroker_sweep;
GRANT UPDATE (used) ON billing_taxrate TO gpubroker_sweep;  -- a final invoice marks the rates that it was taxed by
GRANT EXECUTE ON FUNCTION open_platform_account(text, text, timestamptz) TO gpubroker_sweep;
"""
NOT_SHARED = """
REVOKE EXECUTE ON FUNCTION open_platform_account(text, text, timestamptz) FROM gpubroker_sweep;
REVOKE UPDATE (used) ON billing_taxrate FROM gpubroker_sweep;
REVOKE INSERT, UPDATE ON billing_invoiceseries FROM gpubroker_sweep;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0054_terms_walls")]
    operations = [migrations.RunSQL(FORWARD, BACK), migrations.RunSQL(SHARED, NOT_SHARED)]
