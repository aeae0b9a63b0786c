-- Let payments, top-ups and refunds begin as pending and be settled once. The triggers run after the write, so row-
-- level security refuses first.

-- Locks the invoice, so that nobody changes it before the payment is committed.
CREATE FUNCTION refuse_odd_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status = 'finalized'
    AND (i.tenant_id, i.total - i.settled, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency) FOR SHARE;
  IF NOT FOUND THEN
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
  IF TG_OP = 'DELETE' OR OLD.status NOT IN ('pending', 'stuck') OR
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

CREATE FUNCTION refuse_topup_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a top-up begins as pending' USING ERRCODE = 'restrict_violation';
    END IF;
  ELSIF TG_OP = 'DELETE' OR OLD.status IN ('succeeded', 'declined') OR
     (NEW.id, NEW.tenant_id, NEW.minor, NEW.currency, NEW.gateway, NEW.window, NEW.opened_at)
       IS DISTINCT FROM
     (OLD.id, OLD.tenant_id, OLD.minor, OLD.currency, OLD.gateway, OLD.window, OLD.opened_at) THEN
    RAISE EXCEPTION 'top-up % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER settled_topup AFTER INSERT OR UPDATE OR DELETE ON billing_topup
  FOR EACH ROW EXECUTE FUNCTION refuse_topup_change();
CREATE TRIGGER settled_topup_truncate BEFORE TRUNCATE ON billing_topup
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Locks the payment: two refunds at once cannot return more than it took.
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
      RAISE EXCEPTION 'of payment % no more than it took goes back', NEW.payment_id
        USING ERRCODE = 'restrict_violation';
    END IF;
  ELSIF TG_OP = 'DELETE'
     OR (NEW.id, NEW.tenant_id, NEW.payment_id, NEW.minor, NEW.currency, NEW.gateway, NEW.opened_at,
         NEW.opened_by, NEW.why)
          IS DISTINCT FROM
        (OLD.id, OLD.tenant_id, OLD.payment_id, OLD.minor, OLD.currency, OLD.gateway, OLD.opened_at,
         OLD.opened_by, OLD.why)
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

CREATE FUNCTION refuse_stripe_charge_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.outcome <> 'open' OR
     (NEW.id, NEW.tenant_id, NEW.minor, NEW.currency, NEW.sent_minor, NEW.customer_id, NEW.card_id)
       IS DISTINCT FROM
     (OLD.id, OLD.tenant_id, OLD.minor, OLD.currency, OLD.sent_minor, OLD.customer_id, OLD.card_id)
  THEN
    RAISE EXCEPTION 'charge % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER settled_stripe_charge AFTER UPDATE ON billing_stripecharge
  FOR EACH ROW EXECUTE FUNCTION refuse_stripe_charge_change();
CREATE TRIGGER kept_stripe_charge BEFORE TRUNCATE ON billing_stripecharge
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What is sent to Stripe never changes, except that an attempt is repeated under a new idempotency key.
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
