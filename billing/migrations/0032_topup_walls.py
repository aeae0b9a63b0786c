"""Walls around top-ups: begun as pending, settled once, and of an amount and a gateway that never change."""

from django.db import migrations

from tenants.models.walls import tenant_wall

TOPUPS = """
CREATE FUNCTION refuse_topup_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a top-up begins as pending' USING ERRCODE = 'restrict_violation';
    END IF;
  ELSIF TG_OP = 'DELETE' OR OLD.status IN ('succeeded', 'declined') OR
     (NEW.id, NEW.tenant_id, NEW.minor, NEW.currency, NEW.gateway, NEW.window, NEW.opened_at)
       IS DISTINCT FROM
     (OLD.id, OLD.tenant_id, OLD.minor, OLD.currency, OLD.gateway, OLD.window, OLD.opened_at) THEN
    RAISE EXCEPTION 'top-up % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER settled_topup AFTER INSERT OR UPDATE OR DELETE ON billing_topup
  FOR EACH ROW EXECUTE FUNCTION refuse_topup_change();
CREATE TRIGGER settled_topup_truncate BEFORE TRUNCATE ON billing_topup
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE DELETE ON billing_topup FROM gpubroker_web, gpubroker_worker;
"""
ANYTHING = """
GRANT DELETE ON billing_topup TO gpubroker_web, gpubroker_worker;
DROP TRIGGER settled_topup_truncate ON billing_topup;
DROP TRIGGER settled_topup ON billing_topup;
DROP FUNCTION refuse_topup_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0031_topups")]
    operations = [
        tenant_wall("billing_topup"),
        tenant_wall("billing_autotopup"),
        migrations.RunSQL(TOPUPS, ANYTHING),
    ]
