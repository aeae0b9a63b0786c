"""A stuck payment may go on, and an invoice stays final for as long as a payment of it is not settled.

One that was void or written off while its payment was under way could never be settled: the money would be taken,
and nothing could say for what.
"""

from django.db import migrations

# Beginning a payment keeps everybody from changing the invoice until it is committed, or the two would pass
# unseen by each other.
PAYMENTS = """
CREATE OR REPLACE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status = 'finalized'
    AND (i.tenant_id, i.total, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency) FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a payment is of all that is due on a final invoice that is not paid, here %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status <> 'pending' THEN
    RAISE EXCEPTION 'a payment begins as pending' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION refuse_payment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.status NOT IN ('pending', 'stuck') OR
     (NEW.id, NEW.tenant_id, NEW.invoice_id, NEW.minor, NEW.currency, NEW.gateway, NEW.automatic, NEW.opened_at)
       IS DISTINCT FROM
     (OLD.id, OLD.tenant_id, OLD.invoice_id, OLD.minor, OLD.currency, OLD.gateway, OLD.automatic, OLD.opened_at)
  THEN
    RAISE EXCEPTION 'payment % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
"""
PAYMENTS_BEFORE = """
CREATE OR REPLACE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE FUNCTION refuse_payment_change() RETURNS trigger LANGUAGE plpgsql AS $$
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
"""
# It runs as whoever writes, behind the tenant's wall: an invoice and its payment are the same tenant's. Its question
# sees what was committed while it waited for the invoice.
INVOICES = """
CREATE OR REPLACE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held text;
BEGIN
  IF OLD.status = 'paid' OR NEW.status = 'paid' AND (OLD.status <> 'finalized' OR OLD.total <> 0 AND NOT EXISTS (
       SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status = 'finalized' AND NEW.status NOT IN ('finalized', 'paid') THEN
    SELECT p.id INTO held FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status <> 'declined';
    IF FOUND THEN
      RAISE EXCEPTION 'invoice % does not become % while its payment % may have taken the money', OLD.id, NEW.status, held
        USING ERRCODE = 'restrict_violation', HINT = 'Wait until the payment is settled; then change the invoice.';
    END IF;
  END IF;
  RETURN NEW;
END $$;
"""
INVOICES_BEFORE = """
CREATE OR REPLACE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'paid' OR NEW.status = 'paid' AND (OLD.status <> 'finalized' OR OLD.total <> 0 AND NOT EXISTS (
       SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0008_stuck_payments")]
    operations = [
        migrations.RunSQL(PAYMENTS, PAYMENTS_BEFORE),
        migrations.RunSQL(INVOICES, INVOICES_BEFORE),
    ]
