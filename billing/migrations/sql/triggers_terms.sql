-- Keep discounts, campaigns, minimums and commitments: they only end, and never in a way that changes a closed month.

CREATE FUNCTION refuse_discount_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{last_month,tenant_id}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{last_month,tenant_id}'::text[]
     OR coalesce(NEW.last_month, 'for good') > coalesce(OLD.last_month, 'for good') THEN
    RAISE EXCEPTION 'discount % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM billing_invoiceadjustment c JOIN billing_billingperiod p ON p.id = c.billed_period_id
              WHERE c.source = OLD.id AND c.tenant_id = OLD.tenant_id AND p.label > NEW.last_month) THEN
    RAISE EXCEPTION 'discount % was given in a later month', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER discount_is_kept BEFORE UPDATE OR DELETE ON billing_discount
  FOR EACH ROW EXECUTE FUNCTION refuse_discount_change();

CREATE FUNCTION refuse_campaign_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - 'until' - 'redeemed' IS DISTINCT FROM to_jsonb(OLD) - 'until' - 'redeemed'
     OR NEW.redeemed < OLD.redeemed THEN
    RAISE EXCEPTION 'campaign % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER campaign_is_kept BEFORE UPDATE OR DELETE ON billing_campaign
  FOR EACH ROW EXECUTE FUNCTION refuse_campaign_change();

CREATE FUNCTION refuse_minimum_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
     OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'minimum % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER minimum_is_kept BEFORE UPDATE OR DELETE ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_minimum_change();

-- No commitment begins or ends in a closed month, so its invoice can be verified from the terms years later.
CREATE FUNCTION refuse_commitment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF EXISTS (SELECT FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.status = 'closed' AND upper(p.span) > lower(NEW.valid)) THEN
      RAISE EXCEPTION 'commitment % begins in a month that is closed', NEW.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
     OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid)
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
    RAISE EXCEPTION 'commitment % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM billing_billingperiod p
              WHERE p.tenant_id = OLD.tenant_id AND p.status = 'closed' AND p.span && OLD.valid
                AND upper(p.span) > upper(NEW.valid)
                AND upper(NEW.valid) IS DISTINCT FROM upper(OLD.valid)) THEN
    RAISE EXCEPTION 'commitment % was reckoned with in a month that is closed', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER commitment_is_kept BEFORE INSERT OR UPDATE OR DELETE ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_commitment_change();

-- Locks the months that it reads: a month that is being closed is either closed by then, or its closing sees the new
-- terms.
CREATE FUNCTION refuse_terms_of_closed_months() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  month record;
  since text;
  until text;
BEGIN
  IF TG_OP = 'INSERT' THEN
    since := NEW.first_month;
    until := coalesce(NEW.last_month, 'for good');
  ELSE  -- it only ends
    since := greatest(NEW.first_month, to_char(to_date(NEW.last_month, 'YYYY-MM') + interval '1 month', 'YYYY-MM'));
    until := coalesce(OLD.last_month, 'for good');
  END IF;
  FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.label >= since AND p.label <= until
                ORDER BY p.span FOR SHARE LOOP
    IF month.status = 'closed' THEN
      RAISE EXCEPTION 'month % is closed, and stays as discounts were', month.label
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_discount
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_discount FOR EACH ROW
  WHEN (NEW.last_month IS DISTINCT FROM OLD.last_month) EXECUTE FUNCTION refuse_terms_of_closed_months();

CREATE FUNCTION refuse_spans_of_closed_months() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  month record;
  changed tstzrange := NEW.valid;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
      RAISE EXCEPTION '% % only ends', replace(TG_TABLE_NAME, 'billing_', ''), OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    changed := tstzrange(upper(NEW.valid), upper(OLD.valid));
  END IF;
  FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.span && changed ORDER BY p.span FOR SHARE LOOP
    IF month.status = 'closed' THEN
      RAISE EXCEPTION 'month % is closed, and stays as it was agreed', month.label
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_minimum FOR EACH ROW
  WHEN (NEW.valid IS DISTINCT FROM OLD.valid) EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_commitment FOR EACH ROW
  WHEN (NEW.valid IS DISTINCT FROM OLD.valid) EXECUTE FUNCTION refuse_spans_of_closed_months();

-- Locks the tenant: its currency stays the same until this transaction ends.
CREATE FUNCTION refuse_terms_of_other_currency() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  billed text;
BEGIN
  SELECT t.currency INTO billed FROM tenants_tenant t WHERE t.id = NEW.tenant_id FOR SHARE;
  IF FOUND AND NEW.currency NOT IN ('', billed) THEN  -- whose tenant is not there, its key refuses
    RAISE EXCEPTION 'tenant % is billed in %, not in %', NEW.tenant_id, billed, NEW.currency
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'terms_in_tenants_currency';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_discount
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();

-- The trigger is on a table of tenants, but only billing knows what was charged. It locks out whoever adds charges
-- now, so that none in the old currency arrives meanwhile. The function runs as the owner, whom row-level security
-- binds as well, so it sets app.tenant to the tenant and back.
CREATE FUNCTION refuse_other_currency() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  entered text := coalesce(current_setting('app.tenant', true), '');
  counted boolean;
BEGIN
  LOCK TABLE billing_ratedcharge IN SHARE ROW EXCLUSIVE MODE;
  PERFORM set_config('app.tenant', OLD.id, true);
  counted := EXISTS (SELECT FROM billing_ratedcharge WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM broker_transition WHERE tenant_id = OLD.id AND before = 'active')
    OR EXISTS (SELECT FROM broker_lease WHERE tenant_id = OLD.id AND state <> 'released')
    OR EXISTS (SELECT FROM billing_minimum WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM billing_commitment WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM billing_discount WHERE tenant_id = OLD.id AND currency <> '');
  PERFORM set_config('app.tenant', entered, true);
  IF counted THEN
    RAISE EXCEPTION 'tenant % is charged in % and stays with it', OLD.id, OLD.currency
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenant_currency_stays';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION refuse_other_currency() FROM PUBLIC;
CREATE TRIGGER currency_stays BEFORE UPDATE ON tenants_tenant
  FOR EACH ROW WHEN (OLD.currency IS DISTINCT FROM NEW.currency) EXECUTE FUNCTION refuse_other_currency();
