"""Walls around refunds: begun as pending, settled once, and of a payment never more than it took."""

from django.db import migrations

from tenants.models.walls import tenant_wall

REFUNDS = """
CREATE FUNCTION refuse_refund_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE took bigint; back bigint;
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a refund begins as pending' USING ERRCODE = 'restrict_violation';
    END IF;
    SELECT p.minor INTO took FROM billing_payment p
     WHERE p.id = NEW.payment_id AND p.status = 'succeeded'
       AND (p.tenant_id, p.currency, p.gateway) = (NEW.tenant_id, NEW.currency, NEW.gateway) FOR UPDATE;
    SELECT sum(r.minor) INTO back FROM billing_refund r
     WHERE r.payment_id = NEW.payment_id AND r.status <> 'declined' AND r.returned_at IS NULL;
    IF took IS NULL OR back > took THEN
      RAISE EXCEPTION 'of payment % no more than it took goes back', NEW.payment_id USING ERRCODE = 'restrict_violation';
    END IF;
  ELSIF TG_OP = 'DELETE'
     OR (NEW.id, NEW.tenant_id, NEW.payment_id, NEW.minor, NEW.currency, NEW.gateway, NEW.opened_at, NEW.opened_by, NEW.why)
          IS DISTINCT FROM
        (OLD.id, OLD.tenant_id, OLD.payment_id, OLD.minor, OLD.currency, OLD.gateway, OLD.opened_at, OLD.opened_by, OLD.why)
     OR OLD.status = 'declined' OR OLD.returned_at IS NOT NULL
     OR OLD.status = 'succeeded' AND (NEW.returned_at IS NULL OR (NEW.status, NEW.reference, NEW.settled_at)
          IS DISTINCT FROM (OLD.status, OLD.reference, OLD.settled_at)) THEN
    RAISE EXCEPTION 'refund % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER settled_refund AFTER INSERT OR UPDATE OR DELETE ON billing_refund
  FOR EACH ROW EXECUTE FUNCTION refuse_refund_change();
CREATE TRIGGER settled_refund_truncate BEFORE TRUNCATE ON billing_refund
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE DELETE ON billing_refund FROM gpubroker_web, gpubroker_worker;
"""
ANYTHING = """
GRANT DELETE ON billing_refund TO gpubroker_web, gpubroker_worker;
DROP TRIGGER settled_refund_truncate ON billing_refund;
DROP TRIGGER settled_refund ON billing_refund;
DROP FUNCTION refuse_refund_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0045_refunds")]
    operations = [tenant_wall("billing_refund"), migrations.RunSQL(REFUNDS, ANYTHING)]
