"""Walls around credit notes: of a line no more than it came to, a note is the sum of its lines and lowers what is due
first, and what is settled of an invoice without a payment is what notes and draws say, while no payment of it may have
taken the money.
"""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

# Locking the invoice lets two who give back of one line at once pass one after the other. The second's question sees
# what the first one committed. The sum of a note is looked at when its transaction ends, with all its lines there; none comes later.
CREDITS = """
CREATE FUNCTION refuse_overcredit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  invoice text;
BEGIN
  SELECT i.id INTO invoice
    FROM billing_creditnote n
    JOIN billing_invoiceline l ON l.id = NEW.line_id AND l.invoice_id = n.invoice_id
    JOIN billing_invoice i ON i.id = n.invoice_id AND i.status IN ('finalized', 'paid') AND i.currency = n.currency
   WHERE n.id = NEW.credit_note_id AND (n.tenant_id, l.tenant_id, i.tenant_id)
         = (NEW.tenant_id, NEW.tenant_id, NEW.tenant_id)
     FOR NO KEY UPDATE OF i;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'credit note % is of lines of its own, final invoice', NEW.credit_note_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_of_its_invoice';
  END IF;
  IF (SELECT sum(c.minor) FROM billing_creditnoteline c WHERE c.line_id = NEW.line_id)
     > (SELECT l.minor FROM billing_invoiceline l WHERE l.id = NEW.line_id) THEN
    RAISE EXCEPTION 'more is credited of line % of % than it came to', NEW.line_id, invoice
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credited_at_most_once';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER within_its_line AFTER INSERT ON billing_creditnoteline
  FOR EACH ROW EXECUTE FUNCTION refuse_overcredit();
CREATE FUNCTION refuse_odd_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.total IS DISTINCT FROM (
       SELECT sum(c.minor) FROM billing_creditnoteline c WHERE c.credit_note_id = NEW.id) THEN
    RAISE EXCEPTION 'credit note % is not the sum of its lines', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sum_of_its_lines AFTER INSERT ON billing_creditnote
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_odd_note();
CREATE FUNCTION refuse_later_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  note text;
BEGIN
  SELECT n.id INTO note FROM billing_creditnote n
   WHERE n.id IN (SELECT credit_note_id FROM added)
     AND n.total < (SELECT sum(c.minor) FROM billing_creditnoteline c WHERE c.credit_note_id = n.id);
  IF FOUND THEN
    RAISE EXCEPTION 'credit note % is not the sum of its lines', note
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER no_more_than_its_note AFTER INSERT ON billing_creditnoteline
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_later_lines();
CREATE FUNCTION refuse_odd_parts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  due bigint;
BEGIN
  SELECT CASE i.status WHEN 'finalized' THEN i.total - i.settled ELSE 0 END INTO due FROM billing_invoice i
   WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id AND i.status IN ('finalized', 'paid')
     FOR NO KEY UPDATE;
  IF NOT FOUND OR NEW.off_due <> least(NEW.total, due) THEN
    RAISE EXCEPTION 'credit note % lowers what is due on its final invoice % first', NEW.id, NEW.invoice_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_lowers_what_is_due';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER lowers_what_is_due AFTER INSERT ON billing_creditnote
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_parts();
CREATE FUNCTION refuse_odd_draw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id
    AND i.status = 'draft' AND NEW.minor <= i.total FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a draw is of an invoice of its tenant that becomes final now, and of no more than it came to: %',
      NEW.invoice_id USING ERRCODE = 'restrict_violation', CONSTRAINT = 'draw_of_its_invoice';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER of_its_invoice AFTER INSERT ON billing_balancedraw
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_draw();
"""
NO_CREDITS = """
DROP TRIGGER of_its_invoice ON billing_balancedraw;
DROP FUNCTION refuse_odd_draw();
DROP TRIGGER lowers_what_is_due ON billing_creditnote;
DROP FUNCTION refuse_odd_parts();
DROP TRIGGER no_more_than_its_note ON billing_creditnoteline;
DROP FUNCTION refuse_later_lines();
DROP TRIGGER sum_of_its_lines ON billing_creditnote;
DROP FUNCTION refuse_odd_note();
DROP TRIGGER within_its_line ON billing_creditnoteline;
DROP FUNCTION refuse_overcredit();
"""
# A payment is of what is not settled otherwise; from then on nothing else may settle any of it, until it is known
# that it took nothing.
PAYMENTS = """
CREATE OR REPLACE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status = 'finalized'
    AND (i.tenant_id, i.total{less}, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency) FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a payment is of all that is due on a final invoice that is not paid, here %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status <> 'pending' THEN
    RAISE EXCEPTION 'a payment begins as pending' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
"""
PAID = """
CREATE OR REPLACE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held text;
BEGIN
  IF OLD.status = 'paid' OR NEW.status = 'paid' AND (OLD.status <> 'finalized' OR {due} <> 0 AND NOT EXISTS (
       SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
{settled}  IF OLD.status = 'finalized' AND {changes} THEN
    SELECT p.id INTO held FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status <> 'declined';
    IF FOUND THEN
      RAISE EXCEPTION 'invoice % does not become % while its payment % may have taken the money', OLD.id, NEW.status, held
        USING ERRCODE = 'restrict_violation', HINT = 'Wait until the payment is settled; then change the invoice.';
    END IF;
  END IF;
  RETURN NEW;
END $$;
"""
SETTLED = """  IF NEW.settled < OLD.settled OR OLD.settled > 0 AND NEW.status = 'void' THEN
    RAISE EXCEPTION 'what was given back or drawn of invoice % stays so', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.settled <> coalesce((SELECT sum(n.off_due) FROM billing_creditnote n WHERE n.invoice_id = OLD.id), 0)
                    + coalesce((SELECT d.minor FROM billing_balancedraw d WHERE d.invoice_id = OLD.id), 0) THEN
    RAISE EXCEPTION 'what is settled of invoice % is what was given back and drawn', OLD.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'settled_is_told';
  END IF;
"""
TOLD = """
DROP TRIGGER paid_by_a_payment ON billing_invoice;
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN ((OLD.status, OLD.paid_at{also_old}) IS DISTINCT FROM (NEW.status, NEW.paid_at{also_new}))
  EXECUTE FUNCTION refuse_unpaid();
"""
NOW_SETTLED = (
    PAYMENTS.format(less=" - i.settled")
    + PAID.format(
        due="NEW.total - NEW.settled",
        settled=SETTLED,
        changes="(NEW.status NOT IN ('finalized', 'paid') OR NEW.settled <> OLD.settled)",
    )
    + TOLD.format(also_old=", OLD.settled", also_new=", NEW.settled")
)
BEFORE = (
    TOLD.format(also_old="", also_new="")
    + PAID.format(due="OLD.total", settled="", changes="NEW.status NOT IN ('finalized', 'paid')")
    + PAYMENTS.format(less="")
)


class Migration(migrations.Migration):
    dependencies = [("billing", "0013_credits")]
    operations = [
        tenant_wall("billing_creditnote"),
        tenant_wall("billing_creditnoteline"),
        tenant_wall("billing_balancedraw"),
        append_only("billing_creditnote"),
        append_only("billing_creditnoteline"),
        append_only("billing_balancedraw"),
        migrations.RunSQL(CREDITS, NO_CREDITS),
        migrations.RunSQL(NOW_SETTLED, BEFORE),
    ]
