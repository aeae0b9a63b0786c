"""How far rating has come for each tenant, and the one statement that may charge all of them at once.

Decision 0006 (docs/decisions) says why the sweep role may add charges.
"""

import django.db.models.deletion
from django.db import migrations, models

from tenants.models.walls import tenant_wall

# Rating asks, tenant by tenant, for the billable stretches that have ended since its mark.
NEWS = "CREATE INDEX transition_billable_end ON broker_transition (tenant_id, xid) WHERE before = 'active';"
SWEEP = """
GRANT INSERT ON billing_ratedcharge TO gpubroker_sweep;
CREATE POLICY rating ON billing_ratedcharge FOR INSERT TO gpubroker_sweep WITH CHECK (true);
GRANT INSERT, UPDATE ON billing_ratingmark TO gpubroker_sweep;
CREATE POLICY rating ON billing_ratingmark TO gpubroker_sweep USING (true) WITH CHECK (true);
"""
UNSWEEP = """
DROP POLICY rating ON billing_ratingmark;
REVOKE INSERT, UPDATE ON billing_ratingmark FROM gpubroker_sweep;
DROP POLICY rating ON billing_ratedcharge;
REVOKE INSERT ON billing_ratedcharge FROM gpubroker_sweep;
"""
# A close may come earlier than planned, for a version that is to follow; it never comes undone.
CLOSES_FORWARD = """
CREATE OR REPLACE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid))
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid))
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
     OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0002_walls"), ("broker", "0002_walls"), ("tenants", "0002_walls")]
    operations = [
        migrations.CreateModel(
            name="RatingMark",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("xid", models.BigIntegerField()),
            ],
            options={"abstract": False},
        ),
        tenant_wall("billing_ratingmark"),
        migrations.RemoveIndex(model_name="ratedcharge", name="charge_of_period"),
        migrations.RemoveIndex(model_name="ratedcharge", name="charge_of_project"),
        migrations.AddField(
            model_name="ratedcharge",
            name="billed_period_id",
            field=models.BigIntegerField(default=None),
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name="ratedcharge", index=models.Index(fields=["period_id"], name="charge_of_month")
        ),
        migrations.AddIndex(
            model_name="ratedcharge",
            index=models.Index(
                condition=models.Q(("billed_period_id", models.F("period_id")), _negated=True),
                fields=["billed_period_id"],
                name="charge_billed_late",
            ),
        ),
        migrations.RunSQL(SWEEP, UNSWEEP),
        migrations.RunSQL(NEWS, "DROP INDEX transition_billable_end;"),
        migrations.RunSQL(CLOSES_FORWARD, migrations.RunSQL.noop),
    ]
