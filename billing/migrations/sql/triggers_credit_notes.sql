-- Credit at most the amount of a line, reduce what is due first, and store documents of final invoices only.

-- Locks the invoice: two credits of one line run one after the other, and the second sees what the first committed.
-- The tax is tax × credited ÷ line, rounded half up over all notes together, so all of it returns in whatever order.
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
  IF EXISTS (
       SELECT FROM billing_invoiceline l,
              LATERAL (SELECT sum(c.minor)::numeric AS minor, sum(c.tax_minor) AS tax
                         FROM billing_creditnoteline c WHERE c.line_id = l.id) given
        WHERE l.id = NEW.line_id
          AND given.tax <> div(2 * l.tax_minor * given.minor + l.minor, 2 * l.minor)) THEN
    RAISE EXCEPTION 'what is credited of the tax on line % of % is not its part of it', NEW.line_id, invoice
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_goes_with_its_line';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER within_its_line AFTER INSERT ON billing_creditnoteline
  FOR EACH ROW EXECUTE FUNCTION refuse_overcredit();

-- Checked at the end of the transaction, when all lines exist.
CREATE FUNCTION refuse_odd_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ROW(NEW.total::numeric, NEW.tax::numeric) IS DISTINCT FROM (
       SELECT ROW(sum(c.minor + c.tax_minor), sum(c.tax_minor))
         FROM billing_creditnoteline c WHERE c.credit_note_id = NEW.id) THEN
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
     AND n.total < (SELECT sum(c.minor + c.tax_minor) FROM billing_creditnoteline c WHERE c.credit_note_id = n.id);
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
  IF NOT FOUND OR NEW.reduced_due <> least(NEW.total, due) THEN
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

CREATE FUNCTION refuse_odd_paper() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i
    WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id AND i.finalized_at IS NOT NULL
  UNION ALL
  SELECT FROM billing_creditnote n WHERE n.id = NEW.credit_note_id AND n.tenant_id = NEW.tenant_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a paper is kept of a final invoice, or of a credit note, of its tenant'
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'paper_of_its_tenant';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER of_its_tenant AFTER INSERT ON billing_storeddocument
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_paper();
