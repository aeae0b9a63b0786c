"""Walls around tax: a rate that has begun is never changed, what a final invoice says of it neither, its lines' parts
add up, and a credit note gives back of a line's tax just what belongs to what it gives back of the line.
"""

from django.db import migrations

from tenants.models.walls import tenant_wall

RATES = """
CREATE FUNCTION refuse_tax_rate_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.id, NEW.jurisdiction, NEW.category, NEW.rate_bp, lower(NEW.valid))
       IS DISTINCT FROM (OLD.id, OLD.jurisdiction, OLD.category, OLD.rate_bp, lower(OLD.valid)) THEN
    RAISE EXCEPTION 'a rate of tax is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tax_rate_is_immutable BEFORE UPDATE OR DELETE ON billing_taxrate
  FOR EACH ROW EXECUTE FUNCTION refuse_tax_rate_change();
CREATE TRIGGER final_tax BEFORE INSERT OR UPDATE OR DELETE ON billing_invoicetax
  FOR EACH ROW EXECUTE FUNCTION refuse_final_line_change();
"""
NO_RATES = """
DROP TRIGGER final_tax ON billing_invoicetax;
DROP TRIGGER tax_rate_is_immutable ON billing_taxrate;
DROP FUNCTION refuse_tax_rate_change();
"""
FINAL = """
CREATE OR REPLACE FUNCTION refuse_final_invoice_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status NOT IN ('draft', 'closing') AND (TG_OP = 'DELETE' OR
     (NEW.tenant_id, NEW.period_id, NEW.series, NEW.number, NEW.currency, NEW.total, NEW.finalized_at{new})
       IS DISTINCT FROM
     (OLD.tenant_id, OLD.period_id, OLD.series, OLD.number, OLD.currency, OLD.total, OLD.finalized_at{old})) THEN
    RAISE EXCEPTION 'invoice % is final', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
"""
KEPT = ("tax", "treatment", "customer", "supplier", "due_at")
# An older release that makes an invoice final knows no tax: what it adds up is refused, and a newer one does it.
ADDED_UP = """
CREATE FUNCTION refuse_odd_tax() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lines record;
  taxes bigint;
BEGIN
  SELECT coalesce(sum(l.minor), 0) AS net, coalesce(sum(l.tax_minor), 0) AS tax INTO lines
    FROM billing_invoiceline l WHERE l.invoice_id = NEW.id;
  SELECT coalesce(sum(t.tax), 0) INTO taxes FROM billing_invoicetax t WHERE t.invoice_id = NEW.id;
  IF (NEW.tax, NEW.tax) <> (lines.tax, taxes) OR NEW.tax <> 0 AND NEW.total <> lines.net + NEW.tax
     OR NEW.treatment IN ('domestic', 'destination') AND EXISTS (
          SELECT FROM billing_invoicetax t WHERE t.invoice_id = NEW.id AND t.rate_bp IS NULL AND t.net <> 0) THEN
    RAISE EXCEPTION 'the tax of invoice % is not that of its lines', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_of_its_lines';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER taxed_as_its_lines BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.status IN ('draft', 'closing') AND NEW.status NOT IN ('draft', 'closing'))
  EXECUTE FUNCTION refuse_odd_tax();
"""
NOT_ADDED_UP = "DROP TRIGGER taxed_as_its_lines ON billing_invoice; DROP FUNCTION refuse_odd_tax();"
CREDITS = """
CREATE OR REPLACE FUNCTION refuse_overcredit() RETURNS trigger LANGUAGE plpgsql AS $$
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
{tax}  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION refuse_odd_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF {new} IS DISTINCT FROM (
       SELECT {sums} FROM billing_creditnoteline c WHERE c.credit_note_id = NEW.id) THEN
    RAISE EXCEPTION 'credit note % is not the sum of its lines', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION refuse_later_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  note text;
BEGIN
  SELECT n.id INTO note FROM billing_creditnote n
   WHERE n.id IN (SELECT credit_note_id FROM added)
     AND n.total < (SELECT sum({each}) FROM billing_creditnoteline c WHERE c.credit_note_id = n.id);
  IF FOUND THEN
    RAISE EXCEPTION 'credit note % is not the sum of its lines', note
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
  END IF;
  RETURN NULL;
END $$;
"""
# Half up of tax × credited ÷ line, both counted over all notes: whatever the order, all of it when all of it is back.
PARTS = """  IF EXISTS (
       SELECT FROM billing_invoiceline l,
              LATERAL (SELECT sum(c.minor)::numeric AS minor, sum(c.tax_minor) AS tax
                         FROM billing_creditnoteline c WHERE c.line_id = l.id) given
        WHERE l.id = NEW.line_id
          AND given.tax <> div(2 * l.tax_minor * given.minor + l.minor, 2 * l.minor)) THEN
    RAISE EXCEPTION 'what is credited of the tax on line % of % is not its part of it', NEW.line_id, invoice
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_goes_with_its_line';
  END IF;
"""
WITH_TAX = FINAL.format(
    new="".join(f", NEW.{name}" for name in KEPT), old="".join(f", OLD.{name}" for name in KEPT)
) + CREDITS.format(
    tax=PARTS,
    new="ROW(NEW.total::numeric, NEW.tax::numeric)",
    sums="ROW(sum(c.minor + c.tax_minor), sum(c.tax_minor))",
    each="c.minor + c.tax_minor",
)
WITHOUT = FINAL.format(new="", old="") + CREDITS.format(tax="", new="NEW.total", sums="sum(c.minor)", each="c.minor")


class Migration(migrations.Migration):
    dependencies = [("billing", "0018_taxes")]
    operations = [
        tenant_wall("billing_billingdetails"),
        tenant_wall("billing_invoicetax"),
        migrations.RunSQL(RATES, NO_RATES),
        migrations.RunSQL(ADDED_UP, NOT_ADDED_UP),
        migrations.RunSQL(WITH_TAX, WITHOUT),
    ]
