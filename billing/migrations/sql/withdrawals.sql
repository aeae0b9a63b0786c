-- Let operators take back grants, and withdraw prices before they begin.

CREATE OR REPLACE FUNCTION refuse_odd_lapse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_grant g WHERE g.id = NEW.grant_id AND g.tenant_id = NEW.tenant_id
    AND (g.expires_at <= NEW.at OR NEW.revoked_by <> '');
  IF NOT FOUND OR NEW.minor <> coalesce((
       SELECT b.minor FROM billing_accountbalance b JOIN billing_ledgeraccount a ON a.id = b.account_id
        WHERE a.type = 'wallet_promo' AND a.ref = NEW.grant_id AND a.tenant_id = NEW.tenant_id), 0) THEN
    RAISE EXCEPTION 'a grant lapses after its end, with all that is left of it: %', NEW.grant_id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_lapses_whole';
  END IF;
  RETURN NULL;
END $$;

-- A price version may be closed, also earlier than planned; one whose end has passed is never reopened. Before it
-- begins it may be withdrawn: nobody can have paid it.
CREATE OR REPLACE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF lower(OLD.valid) <= statement_timestamp() THEN
      RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
  END IF;
  IF (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid),
      NEW.free_start_s, NEW.model, NEW.tier_from_s, NEW.tier_nano)
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid),
                         OLD.free_start_s, OLD.model, OLD.tier_from_s, OLD.tier_nano)
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
        AND upper(OLD.valid) <= statement_timestamp()
     OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
