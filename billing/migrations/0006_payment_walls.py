"""Walls around payments: of the whole invoice or of nothing, settled once, and no invoice is paid without one."""

from django.db import migrations

from tenants.models.walls import tenant_wall

# They fire after the write, so that the wall between tenants speaks first.
PAYMENTS = """
CREATE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status = 'finalized'
                   AND (i.tenant_id, i.total, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency)) THEN
    RAISE EXCEPTION 'a payment is of all that is due on a final invoice that is not paid, here %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status <> 'pending' THEN
    RAISE EXCEPTION 'a payment begins as pending' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER payment_of_an_invoice AFTER INSERT ON billing_payment
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_payment();
CREATE FUNCTION refuse_payment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.status <> 'pending' OR
     (NEW.id, NEW.tenant_id, NEW.invoice_id, NEW.minor, NEW.currency, NEW.gateway, NEW.automatic, NEW.opened_at)
       IS DISTINCT FROM
     (OLD.id, OLD.tenant_id, OLD.invoice_id, OLD.minor, OLD.currency, OLD.gateway, OLD.automatic, OLD.opened_at)
  THEN
    RAISE EXCEPTION 'payment % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER settled_payment AFTER UPDATE OR DELETE ON billing_payment
  FOR EACH ROW EXECUTE FUNCTION refuse_payment_change();
CREATE TRIGGER settled_payment_truncate BEFORE TRUNCATE ON billing_payment
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE DELETE ON billing_payment FROM gpubroker_web, gpubroker_worker;
"""
ANYTHING = """
GRANT DELETE ON billing_payment TO gpubroker_web, gpubroker_worker;
DROP TRIGGER settled_payment_truncate ON billing_payment;
DROP TRIGGER settled_payment ON billing_payment;
DROP FUNCTION refuse_payment_change();
DROP TRIGGER payment_of_an_invoice ON billing_payment;
DROP FUNCTION refuse_odd_payment();
"""
# It runs as whoever writes, behind the tenant's wall: an invoice and its payment are the same tenant's.
PAID = """
CREATE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'paid' OR NEW.status = 'paid' AND (OLD.status <> 'finalized' OR OLD.total <> 0 AND NOT EXISTS (
       SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN ((OLD.status, OLD.paid_at) IS DISTINCT FROM (NEW.status, NEW.paid_at))
  EXECUTE FUNCTION refuse_unpaid();
"""
UNPAID = """
DROP TRIGGER paid_by_a_payment ON billing_invoice;
DROP FUNCTION refuse_unpaid();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0005_payments"), ("billing", "0002_walls")]
    operations = [
        tenant_wall("billing_payment"),
        migrations.RunSQL(PAYMENTS, ANYTHING),
        migrations.RunSQL(PAID, UNPAID),
    ]
