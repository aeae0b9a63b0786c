"""What many invoices' lines cost to write: fewer indexes, one check for a statement, one look-up of whose they may be.

Indexes go that another begins with, and those that Django adds to every text key for LIKE 'prefix%', as the other floors
did: nobody looks for half an id. That an invoice is final is asked once for all that a statement touches, and of both
invoices where a line goes from one to another.
"""

import django.db.models.deletion
from django.db import migrations, models

NO_SEARCH = r"""
DO $$
DECLARE each record;
BEGIN
  FOR each IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'billing\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', each.indexname);
  END LOOP;
END $$;
"""
OF_INVOICES = {"billing_invoiceline": "final_line", "billing_invoicetax": "final_tax"}
CHECKED = {"added": "INSERT", "left": "UPDATE", "reached": "UPDATE", "removed": "DELETE"}
BEFORE = ("left", "removed")  # by the rows as they were
# OFFSET 0 keeps it a look-up for each invoice, however many there are.
FINAL = """
CREATE FUNCTION refuse_change_of_final() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  invoice text;
BEGIN
  SELECT t.invoice_id INTO invoice FROM (SELECT DISTINCT invoice_id FROM touched) t
   WHERE EXISTS (SELECT FROM billing_invoice i
                  WHERE i.id = t.invoice_id AND i.status NOT IN ('draft', 'closing') OFFSET 0)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'invoice % is final', invoice USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
""" + "".join(
    f"DROP TRIGGER {name} ON {table};"
    + "".join(
        f" CREATE TRIGGER {name}_{how} AFTER {verb} ON {table}"
        f" REFERENCING {'OLD' if how in BEFORE else 'NEW'} TABLE AS touched"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();"
        for how, verb in CHECKED.items()
    )
    for table, name in OF_INVOICES.items()
)
ROW_BY_ROW = (
    "".join(
        "".join(f"DROP TRIGGER {name}_{how} ON {table};" for how in CHECKED)
        + f" CREATE TRIGGER {name} BEFORE INSERT OR UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION refuse_final_line_change();"
        for table, name in OF_INVOICES.items()
    )
    + "DROP FUNCTION refuse_change_of_final();"
)
# As 0055 has it; PostgreSQL keeps a subquery hashed and walks along an array, tenant by tenant, for every row.
LISTED = "tenant_id = ANY ((SELECT string_to_array(current_setting('app.tenants', true), ','))::text[])"
HASHED = "tenant_id IN (SELECT unnest(string_to_array(current_setting('app.tenants', true), ',')))"
NAMED = (
    "billing_billingperiod",
    "billing_invoice",
    "billing_invoiceline",
    "billing_invoicetax",
    "billing_ledgeraccount",
    "billing_ledgertransfer",
    "billing_letter",
    "tenants_auditevent",
)


def shard(named: str) -> str:
    return "".join(f"ALTER POLICY shard ON {table} USING ({named}) WITH CHECK ({named});" for table in NAMED)


class Migration(migrations.Migration):
    dependencies = [("billing", "0055_closing_in_sets")]
    operations = [
        migrations.RunSQL(NO_SEARCH, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="invoiceline",
            name="invoice",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="lines",
                to="billing.invoice",
            ),
        ),
        migrations.AlterField(
            model_name="invoicetax",
            name="invoice",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="taxes",
                to="billing.invoice",
            ),
        ),
        migrations.RunSQL(FINAL, ROW_BY_ROW),
        migrations.RunSQL(shard(HASHED), shard(LISTED)),
    ]
