"""Who made a service account or a token; of those that are there, as the audit trail tells."""

from django.db import migrations, models

FILL = """
DO $$
DECLARE
  every text[];
  one text;
BEGIN
  SET LOCAL ROLE gpubroker_sweep;  -- the wall binds the owner too
  SELECT coalesce(array_agg(id), '{}') INTO every FROM tenants_tenant;
  RESET ROLE;
  FOREACH one IN ARRAY every LOOP
    PERFORM set_config('app.tenant', one, true);
    UPDATE tenants_serviceaccount made SET made_by = told.actor_id, made_by_label = told.actor_label
      FROM tenants_auditevent told
     WHERE told.tenant_id = one AND told.action = 'service_account.create' AND told.subject_id = made.id;
    UPDATE tenants_apitoken made SET made_by = told.actor_id, made_by_label = told.actor_label
      FROM tenants_auditevent told
     WHERE told.tenant_id = one AND told.action = 'token.create' AND told.subject_id = made.id;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_storage_quota")]

    operations = [
        *(
            migrations.AddField(
                model, name, models.CharField(blank=True, db_default="", default="", max_length=length)
            )
            for model in ("serviceaccount", "apitoken")
            for name, length in (("made_by", 40), ("made_by_label", 254))
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
