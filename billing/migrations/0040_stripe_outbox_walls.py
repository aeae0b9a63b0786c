"""What is sent to Stripe is frozen in PostgreSQL too, and the web, which never calls Stripe, writes none of it."""

from django.db import migrations

FROZEN = """
CREATE FUNCTION refuse_stripe_command_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.state = 'done'
     OR (NEW.id, NEW.tenant_id, NEW.subject, NEW.step, NEW.round, NEW.params)
       IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.subject, OLD.step, OLD.round, OLD.params)
     OR NEW.attempt NOT IN (OLD.attempt, OLD.attempt + 1) OR (NEW.idem <> OLD.idem) <> (NEW.attempt > OLD.attempt)
  THEN
    RAISE EXCEPTION 'command % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER frozen_stripe_command AFTER UPDATE ON billing_stripecommand
  FOR EACH ROW EXECUTE FUNCTION refuse_stripe_command_change();
CREATE TRIGGER kept_stripe_command BEFORE TRUNCATE ON billing_stripecommand
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept_stripe_charge BEFORE TRUNCATE ON billing_stripecharge
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE INSERT, UPDATE ON billing_stripecharge, billing_stripecommand FROM gpubroker_web;
"""
LOOSE = """
GRANT INSERT, UPDATE ON billing_stripecharge, billing_stripecommand TO gpubroker_web;
DROP TRIGGER kept_stripe_charge ON billing_stripecharge;
DROP TRIGGER kept_stripe_command ON billing_stripecommand;
DROP TRIGGER frozen_stripe_command ON billing_stripecommand;
DROP FUNCTION refuse_stripe_command_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0039_stripe_pieces")]
    operations = [migrations.RunSQL(FROZEN, LOOSE)]
