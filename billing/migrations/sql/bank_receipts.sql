-- Count money received by bank transfer, and let invoices be partly paid, written off and cancelled.

CREATE OR REPLACE FUNCTION refuse_final_invoice_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status NOT IN ('draft', 'closing') AND (TG_OP = 'DELETE' OR
     (NEW.tenant_id, NEW.period_id, NEW.series, NEW.number, NEW.currency, NEW.total, NEW.finalized_at,
      NEW.tax, NEW.treatment, NEW.customer, NEW.supplier, NEW.due_at, NEW.po_number, NEW.bank_account)
       IS DISTINCT FROM
     (OLD.tenant_id, OLD.period_id, OLD.series, OLD.number, OLD.currency, OLD.total, OLD.finalized_at,
      OLD.tax, OLD.treatment, OLD.customer, OLD.supplier, OLD.due_at, OLD.po_number, OLD.bank_account)) THEN
    RAISE EXCEPTION 'invoice % is final', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- Adds up what was received, whatever was written: an older release does not know of it. What came in covers what is
-- due, whichever way it came; a bank receipt that was reversed makes the invoice due again. Runs as the writer, behind
-- row-level security; its queries see what was committed while it waited for the lock on the invoice.
CREATE OR REPLACE FUNCTION refuse_unpaid() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held text;
  by_bank bigint;
  by_gateway bigint;
BEGIN
  SELECT coalesce(sum(p.minor), 0) INTO by_bank
    FROM billing_bankreceiptpart p JOIN billing_bankreceipt r ON r.id = p.receipt_id AND r.reversed_at IS NULL
   WHERE p.invoice_id = OLD.id;
  SELECT coalesce(sum(p.minor), 0) INTO by_gateway FROM billing_payment p
   WHERE p.invoice_id = OLD.id AND p.status = 'succeeded';
  -- Older releases counted no payments, so what one of them took may be missing.
  IF by_bank + by_gateway <> OLD.received OR NEW.received <> OLD.received THEN
    NEW.received := by_bank + by_gateway;
  END IF;
  IF NEW.status = 'paid' AND OLD.status NOT IN ('finalized', 'partially_paid', 'uncollectible', 'paid')
     OR NEW.status = 'paid' AND NEW.total - NEW.settled - NEW.received <> 0 THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status = 'paid' AND (NEW.status, NEW.paid_at) IS DISTINCT FROM ('paid', OLD.paid_at)
     AND NOT (NEW.status IN ('finalized', 'partially_paid', 'uncollectible') AND NEW.received < OLD.received
              AND NEW.paid_at IS NULL)
     AND NOT (NEW.status = 'void' AND NEW.paid_at IS NOT DISTINCT FROM OLD.paid_at AND NEW.total = (
              SELECT coalesce(sum(n.total), 0) FROM billing_creditnote n WHERE n.invoice_id = OLD.id)) THEN
    RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status <> 'draft' AND (NEW.status, NEW.settled, by_bank) IS DISTINCT FROM
                               (OLD.status, OLD.settled, OLD.received - by_gateway) THEN
    SELECT p.id INTO held FROM billing_payment p
     WHERE p.invoice_id = OLD.id AND p.status IN ('pending', 'stuck');
    IF FOUND THEN
      RAISE EXCEPTION 'invoice % does not become % while its payment % may have taken the money',
        OLD.id, NEW.status, held
        USING ERRCODE = 'restrict_violation', HINT = 'Wait until the payment is settled; then change the invoice.';
    END IF;
  END IF;
  IF NEW.status = 'partially_paid' AND NOT (NEW.received > 0 AND NEW.received < NEW.total - NEW.settled)
     OR NEW.status = 'finalized' AND OLD.status <> 'draft' AND NEW.received > 0 THEN
    RAISE EXCEPTION 'invoice % is partly paid if a part of it was received: % of %', OLD.id, NEW.received,
      NEW.total - NEW.settled USING ERRCODE = 'restrict_violation', CONSTRAINT = 'partly_paid_in_part';
  END IF;
  IF NEW.settled < OLD.settled THEN
    RAISE EXCEPTION 'what was given back or drawn of invoice % stays so', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status = 'void' AND OLD.settled + NEW.received > 0 AND NEW.total <> (
       SELECT coalesce(sum(n.total), 0) FROM billing_creditnote n WHERE n.invoice_id = OLD.id) THEN
    RAISE EXCEPTION 'what was given back or drawn of invoice % stays so', OLD.id
      USING ERRCODE = 'restrict_violation', HINT = 'Credit all of the invoice first.';
  END IF;
  IF NEW.status = 'uncollectible' AND NOT EXISTS (
       SELECT FROM billing_writeoff w WHERE w.invoice_id = OLD.id AND w.undone_at IS NULL) THEN
    RAISE EXCEPTION 'invoice % is written off for a reason', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.settled <> coalesce((SELECT sum(n.reduced_due) FROM billing_creditnote n WHERE n.invoice_id = OLD.id), 0)
                    + coalesce((SELECT d.minor FROM billing_balancedraw d WHERE d.invoice_id = OLD.id), 0)
                    + coalesce((SELECT sum(g.minor) FROM billing_grantdraw g WHERE g.invoice_id = OLD.id), 0) THEN
    RAISE EXCEPTION 'what is settled of invoice % is what was given back and drawn', OLD.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'settled_is_told';
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER paid_by_a_payment ON billing_invoice;
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN ((OLD.status, OLD.paid_at, OLD.settled, OLD.received)
        IS DISTINCT FROM (NEW.status, NEW.paid_at, NEW.settled, NEW.received))
  EXECUTE FUNCTION refuse_unpaid();

CREATE OR REPLACE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status IN ('finalized', 'partially_paid')
    AND (i.tenant_id, i.total - i.settled - i.received, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency)
    FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a payment is of all that is due on a final invoice that is not paid, here %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status <> 'pending' THEN
    RAISE EXCEPTION 'a payment begins as pending' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION refuse_odd_parts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  due bigint;
BEGIN
  SELECT CASE WHEN i.status IN ('finalized', 'partially_paid') THEN i.total - i.settled - i.received ELSE 0 END
    INTO due FROM billing_invoice i
   WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id
     AND i.status IN ('finalized', 'partially_paid', 'paid')
     FOR NO KEY UPDATE;
  IF NOT FOUND OR NEW.reduced_due <> least(NEW.total, due) THEN
    RAISE EXCEPTION 'credit note % lowers what is due on its final invoice % first', NEW.id, NEW.invoice_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_lowers_what_is_due';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION refuse_granted_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The invoice still says what was due before this note.
  IF (SELECT sum(n.total - n.reduced_due - n.to_grants) FROM billing_creditnote n WHERE n.invoice_id = NEW.invoice_id)
     > (SELECT i.total - CASE WHEN i.status IN ('finalized', 'partially_paid')
                              THEN i.total - i.settled - i.received - NEW.reduced_due ELSE 0 END
               - (SELECT sum(n.reduced_due) FROM billing_creditnote n WHERE n.invoice_id = i.id)
               - (SELECT sum(d.minor) FROM billing_grantdraw d WHERE d.invoice_id = i.id)
          FROM billing_invoice i WHERE i.id = NEW.invoice_id) THEN
    RAISE EXCEPTION 'credit note % gives back more money than was paid', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_of_paid_money';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION refuse_overcredit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  invoice text;
BEGIN
  SELECT i.id INTO invoice
    FROM billing_creditnote n
    JOIN billing_invoiceline l ON l.id = NEW.line_id AND l.invoice_id = n.invoice_id
    JOIN billing_invoice i ON i.id = n.invoice_id AND i.status IN ('finalized', 'partially_paid', 'paid')
                          AND i.currency = n.currency
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

-- A receipt is reversed once; otherwise only its wait for a card payment ends.
CREATE TRIGGER receipt_stays BEFORE UPDATE ON billing_bankreceipt FOR EACH ROW
  WHEN (OLD.reversed_at IS NOT NULL
        OR to_jsonb(NEW) - '{waits,reversed_at,reversed_by,reversal_reason}'::text[]
           IS DISTINCT FROM to_jsonb(OLD) - '{waits,reversed_at,reversed_by,reversal_reason}'::text[])
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER receipt_kept BEFORE DELETE ON billing_bankreceipt FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER receipt_kept_truncate BEFORE TRUNCATE ON billing_bankreceipt
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Locks the invoice; its amount due is compared when the invoice is written.
CREATE FUNCTION refuse_odd_receipt_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i
    JOIN billing_bankreceipt r ON r.id = NEW.receipt_id AND r.reversed_at IS NULL
     AND (r.tenant_id, r.currency) = (i.tenant_id, i.currency)
   WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id
     AND i.status IN ('finalized', 'partially_paid', 'uncollectible')
     AND NEW.recovered = (i.status = 'uncollectible')
     AND (SELECT sum(p.minor) FROM billing_bankreceiptpart p WHERE p.receipt_id = r.id) <= r.minor
     FOR NO KEY UPDATE OF i;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a receipt pays at most its amount of final invoices of its tenant, not %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'receipt_pays_its_invoices';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER pays_its_invoices AFTER INSERT ON billing_bankreceiptpart
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_receipt_part();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON billing_bankreceiptpart
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_bankreceiptpart
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER write_off_stays BEFORE UPDATE ON billing_writeoff FOR EACH ROW
  WHEN (OLD.undone_at IS NOT NULL
        OR to_jsonb(NEW) - '{undone_at,undone_minor,undone_by}'::text[]
           IS DISTINCT FROM to_jsonb(OLD) - '{undone_at,undone_minor,undone_by}'::text[])
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER write_off_kept BEFORE DELETE ON billing_writeoff FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_odd_write_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status IN ('finalized', 'partially_paid')
    AND (i.tenant_id, i.currency, i.total - i.settled - i.received) = (NEW.tenant_id, NEW.currency, NEW.minor)
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'all that is due on a final invoice is written off, here %', NEW.invoice_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'write_off_of_all_due';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER of_all_that_is_due AFTER INSERT ON billing_writeoff
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_write_off();

-- What a bank said stays; what operators decided about it may be decided anew, as when a receipt was wrong.
CREATE TRIGGER entry_stays BEFORE UPDATE ON billing_bankentry FOR EACH ROW
  WHEN (OLD.status = 'outgoing'
        OR to_jsonb(NEW) - '{status,receipt,reason,decided_at,decided_by}'::text[]
           IS DISTINCT FROM to_jsonb(OLD) - '{status,receipt,reason,decided_at,decided_by}'::text[])
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entry_kept BEFORE DELETE ON billing_bankentry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER statement_kept BEFORE UPDATE OR DELETE ON billing_bankstatement
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

REVOKE UPDATE, DELETE ON billing_bankreceiptpart, billing_bankstatement FROM gpubroker_web, gpubroker_worker;
REVOKE DELETE ON billing_bankreceipt, billing_writeoff, billing_bankentry FROM gpubroker_web, gpubroker_worker;

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['billing_bankreceipt', 'billing_bankreceiptpart', 'billing_writeoff'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system USING (true)', name);
  END LOOP;
  FOR name IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'billing\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', name);
  END LOOP;
END $$;
