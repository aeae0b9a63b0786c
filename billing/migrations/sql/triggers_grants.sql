-- Let promotional grants pay only within their scope, be refunded at most what they paid, and expire as a whole.

CREATE FUNCTION refuse_odd_grant_draws() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  odd text;
BEGIN
  SELECT d.id INTO odd FROM added d WHERE NOT EXISTS (
    SELECT FROM billing_grant g
      JOIN billing_invoice i ON i.id = d.invoice_id AND i.tenant_id = d.tenant_id AND i.status = 'draft'
      JOIN billing_invoiceline l ON l.id = d.line_id AND l.invoice_id = i.id
      LEFT JOIN tenants_project p ON p.id = l.project_id AND p.tenant_id = d.tenant_id
     WHERE g.id = d.grant_id AND (g.tenant_id, g.currency) = (d.tenant_id, i.currency)
       AND (g.project_id IS NULL OR p.path @> ARRAY[g.project_id])
       AND (g.offering_id IS NULL OR g.offering_id = l.offering_id)
       AND NOT EXISTS (SELECT FROM billing_grantexpiry e WHERE e.grant_id = g.id)) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'a grant pays within its scope for an invoice of its tenant that becomes final now: not %', odd
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_draw_in_scope';
  END IF;
  SELECT i.id INTO odd FROM billing_invoice i
   WHERE i.id IN (SELECT invoice_id FROM added)
     AND i.total < (SELECT sum(d.minor) FROM billing_grantdraw d WHERE d.invoice_id = i.id) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'grants pay no more of invoice % than it comes to', odd
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_draws_within_invoice';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER within_scope AFTER INSERT ON billing_grantdraw
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_odd_grant_draws();

CREATE FUNCTION refuse_odd_grant_returns() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  odd text;
BEGIN
  SELECT r.id INTO odd FROM added r
    LEFT JOIN billing_creditnote n ON n.id = r.credit_note_id AND n.tenant_id = r.tenant_id
   WHERE n.id IS NULL
      OR r.lapsed IS DISTINCT FROM EXISTS (SELECT FROM billing_grantexpiry e WHERE e.grant_id = r.grant_id)
      OR (SELECT sum(a.minor) FROM billing_grantreturn a JOIN billing_creditnote m ON m.id = a.credit_note_id
           WHERE a.grant_id = r.grant_id AND m.invoice_id = n.invoice_id)
         > (SELECT coalesce(sum(d.minor), 0) FROM billing_grantdraw d
             WHERE d.grant_id = r.grant_id AND d.invoice_id = n.invoice_id)
      OR (SELECT sum(a.minor) FROM billing_grantreturn a WHERE a.credit_note_id = n.id) > n.to_grants LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'no more goes back to a grant than it paid: %', odd
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_returned_what_it_paid';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER what_it_paid AFTER INSERT ON billing_grantreturn
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_odd_grant_returns();

CREATE FUNCTION refuse_odd_return_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.to_grants <> coalesce((
       SELECT sum(r.minor) FROM billing_grantreturn r WHERE r.credit_note_id = NEW.id), 0) THEN
    RAISE EXCEPTION 'what credit note % gives back to grants is what grants got', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_to_grants_is_told';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sum_of_its_returns AFTER INSERT ON billing_creditnote
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_odd_return_sum();

CREATE FUNCTION refuse_granted_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The invoice still says what was due before this note.
  IF (SELECT sum(n.total - n.reduced_due - n.to_grants) FROM billing_creditnote n WHERE n.invoice_id = NEW.invoice_id)
     > (SELECT i.total - CASE i.status WHEN 'finalized' THEN i.total - i.settled - NEW.reduced_due ELSE 0 END
               - (SELECT sum(n.reduced_due) FROM billing_creditnote n WHERE n.invoice_id = i.id)
               - (SELECT sum(d.minor) FROM billing_grantdraw d WHERE d.invoice_id = i.id)
          FROM billing_invoice i WHERE i.id = NEW.invoice_id) THEN
    RAISE EXCEPTION 'credit note % gives back more money than was paid', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_of_paid_money';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER paid_money_only AFTER INSERT ON billing_creditnote
  FOR EACH ROW EXECUTE FUNCTION refuse_granted_money();

CREATE FUNCTION refuse_odd_lapse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_grant g WHERE g.id = NEW.grant_id AND g.tenant_id = NEW.tenant_id AND g.expires_at <= NEW.at;
  IF NOT FOUND OR NEW.minor <> coalesce((
       SELECT b.minor FROM billing_accountbalance b JOIN billing_ledgeraccount a ON a.id = b.account_id
        WHERE a.type = 'wallet_promo' AND a.ref = NEW.grant_id AND a.tenant_id = NEW.tenant_id), 0) THEN
    RAISE EXCEPTION 'a grant lapses after its end, with all that is left of it: %', NEW.grant_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_lapses_whole';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER lapses_whole AFTER INSERT ON billing_grantexpiry
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_lapse();
