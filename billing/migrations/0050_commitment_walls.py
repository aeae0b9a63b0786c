"""Walls around commitments, and what of them never changes."""

from django.db import migrations

from tenants.models.walls import tenant_wall

# A commitment only ends. What a month that is closed was reckoned with stays as it was: none begins in one, and none
# ends in one, so whoever checks its invoice in ten years finds what was agreed on then.
KEPT = """
CREATE FUNCTION refuse_commitment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF EXISTS (SELECT FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.status = 'closed' AND upper(p.span) > lower(NEW.valid)) THEN
      RAISE EXCEPTION 'commitment % begins in a month that is closed', NEW.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
     OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid)
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
    RAISE EXCEPTION 'commitment % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM billing_billingperiod p
              WHERE p.tenant_id = OLD.tenant_id AND p.status = 'closed' AND p.span && OLD.valid
                AND upper(p.span) > upper(NEW.valid)
                AND upper(NEW.valid) IS DISTINCT FROM upper(OLD.valid)) THEN
    RAISE EXCEPTION 'commitment % was reckoned with in a month that is closed', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER commitment_is_kept BEFORE INSERT OR UPDATE OR DELETE ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_commitment_change();
"""
LOOSE = "DROP TRIGGER commitment_is_kept ON billing_commitment; DROP FUNCTION refuse_commitment_change();"


class Migration(migrations.Migration):
    dependencies = [("billing", "0049_commitments")]
    operations = [
        tenant_wall("billing_commitment"),
        migrations.RunSQL(KEPT, LOOSE),
    ]
