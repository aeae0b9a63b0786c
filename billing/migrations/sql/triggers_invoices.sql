-- Keep final invoices unchanged, and let an invoice become paid or settled only as payments and credits say.

CREATE FUNCTION refuse_final_invoice_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status NOT IN ('draft', 'closing') AND (TG_OP = 'DELETE' OR
     (NEW.tenant_id, NEW.period_id, NEW.series, NEW.number, NEW.currency, NEW.total, NEW.finalized_at,
      NEW.tax, NEW.treatment, NEW.customer, NEW.supplier, NEW.due_at)
       IS DISTINCT FROM
     (OLD.tenant_id, OLD.period_id, OLD.series, OLD.number, OLD.currency, OLD.total, OLD.finalized_at,
      OLD.tax, OLD.treatment, OLD.customer, OLD.supplier, OLD.due_at)) THEN
    RAISE EXCEPTION 'invoice % is final', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER final_invoice BEFORE UPDATE OR DELETE ON billing_invoice
  FOR EACH ROW EXECUTE FUNCTION refuse_final_invoice_change();

-- The agreed terms of the month and the end of the dispute window do not change either.
CREATE TRIGGER agreed_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.status NOT IN ('draft', 'closing') AND NEW.agreed IS DISTINCT FROM OLD.agreed)
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER window_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.number IS NOT NULL AND NEW.disputable_until IS DISTINCT FROM OLD.disputable_until)
  EXECUTE FUNCTION refuse_change();

-- Checks all rows of a statement at once. OFFSET 0 makes PostgreSQL look up each invoice only once.
CREATE FUNCTION refuse_change_of_final() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  invoice text;
BEGIN
  SELECT t.invoice_id INTO invoice FROM (SELECT DISTINCT invoice_id FROM touched) t
   WHERE EXISTS (SELECT FROM billing_invoice i
                  WHERE i.id = t.invoice_id AND i.status NOT IN ('draft', 'closing') OFFSET 0)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'invoice % is final', invoice USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER final_line_added AFTER INSERT ON billing_invoiceline
  REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_left AFTER UPDATE ON billing_invoiceline
  REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_reached AFTER UPDATE ON billing_invoiceline
  REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_removed AFTER DELETE ON billing_invoiceline
  REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_added AFTER INSERT ON billing_invoicetax
  REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_left AFTER UPDATE ON billing_invoicetax
  REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_reached AFTER UPDATE ON billing_invoicetax
  REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_removed AFTER DELETE ON billing_invoicetax
  REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();

-- Runs as the writer, behind row-level security, so an invoice and its payment belong to the same tenant. Its queries
-- see what was committed while it waited for the lock on the invoice. While a payment may have taken money, nothing
-- else settles or voids the invoice.
CREATE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held text;
BEGIN
  IF OLD.status = 'paid' OR NEW.status = 'paid' AND (
       OLD.status <> 'finalized' OR NEW.total - NEW.settled <> 0 AND NOT EXISTS (
         SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.settled < OLD.settled OR OLD.settled > 0 AND NEW.status = 'void' THEN
    RAISE EXCEPTION 'what was given back or drawn of invoice % stays so', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.settled <> coalesce((SELECT sum(n.reduced_due) FROM billing_creditnote n WHERE n.invoice_id = OLD.id), 0)
                    + coalesce((SELECT d.minor FROM billing_balancedraw d WHERE d.invoice_id = OLD.id), 0)
                    + coalesce((SELECT sum(g.minor) FROM billing_grantdraw g WHERE g.invoice_id = OLD.id), 0) THEN
    RAISE EXCEPTION 'what is settled of invoice % is what was given back and drawn', OLD.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'settled_is_told';
  END IF;
  IF OLD.status = 'finalized' AND (NEW.status NOT IN ('finalized', 'paid') OR NEW.settled <> OLD.settled) THEN
    SELECT p.id INTO held FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status <> 'declined';
    IF FOUND THEN
      RAISE EXCEPTION 'invoice % does not become % while its payment % may have taken the money',
        OLD.id, NEW.status, held
        USING ERRCODE = 'restrict_violation', HINT = 'Wait until the payment is settled; then change the invoice.';
    END IF;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN ((OLD.status, OLD.paid_at, OLD.settled) IS DISTINCT FROM (NEW.status, NEW.paid_at, NEW.settled))
  EXECUTE FUNCTION refuse_unpaid();

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

-- During an upgrade an older release may close a month without knowing of tax. Where the tenant gave billing details,
-- or any rate exists, the invoice stays a draft until the newer release closes it.
CREATE FUNCTION refuse_undecided_tax() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.supplier IS NULL) <> (NEW.treatment = '')
     OR NEW.customer IS NULL AND (EXISTS (SELECT FROM billing_billingdetails d WHERE d.tenant_id = NEW.tenant_id)
                                  OR EXISTS (SELECT FROM billing_taxrate)) THEN
    RAISE EXCEPTION 'nobody has decided how invoice % is taxed', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_decided';
  END IF;
  IF EXISTS (SELECT FROM billing_invoicetax t JOIN billing_taxrate r ON r.id = t.rate_id
              WHERE t.invoice_id = NEW.id AND t.rate_bp IS DISTINCT FROM r.rate_bp) THEN
    RAISE EXCEPTION 'a rate of tax was corrected since invoice % was made', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_at_its_rate';
  END IF;
  UPDATE billing_taxrate r SET used = true
   WHERE NOT r.used AND r.id IN (SELECT t.rate_id FROM billing_invoicetax t WHERE t.invoice_id = NEW.id);
  RETURN NEW;
END $$;
CREATE TRIGGER taxed_decidedly BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.status IN ('draft', 'closing') AND NEW.status NOT IN ('draft', 'closing', 'void'))
  EXECUTE FUNCTION refuse_undecided_tax();
