-- Keep prices, rates of tax and quotes as they were published.

-- A price version may be closed, also earlier than planned; a closed one is never reopened.
CREATE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid),
                          NEW.free_start_s, NEW.model, NEW.tier_from_s, NEW.tier_nano)
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid),
                         OLD.free_start_s, OLD.model, OLD.tier_from_s, OLD.tier_nano)
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
     OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER price_is_immutable BEFORE UPDATE OR DELETE ON billing_priceversion
  FOR EACH ROW EXECUTE FUNCTION refuse_price_change();

CREATE FUNCTION refuse_odd_rate_card() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_ratecard c
                  WHERE c.id = NEW.rate_card_id AND c.tenant_id IS NOT DISTINCT FROM NEW.tenant_id) THEN
    RAISE EXCEPTION 'a price belongs to the tenant of its rate card' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER price_of_a_rate_card AFTER INSERT OR UPDATE OF tenant_id, rate_card_id ON billing_priceversion
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_rate_card();

-- The price of a version never changes, so a quote that agrees with it now agrees for good.
CREATE FUNCTION refuse_odd_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_priceversion v WHERE v.id = NEW.price_version_id AND v.valid @> NEW.made_at
                   AND (v.offering_id, v.currency, v.nano_per_hour)
                     = (NEW.offering_id, NEW.currency, NEW.nano_per_hour)) THEN
    RAISE EXCEPTION 'quote % names a price that nobody published', NEW.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER quote_of_a_price AFTER INSERT ON billing_quote FOR EACH ROW EXECUTE FUNCTION refuse_odd_quote();

-- A rate may be corrected until the first invoice was taxed by it.
CREATE FUNCTION refuse_tax_rate_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.id, NEW.jurisdiction, NEW.category, lower(NEW.valid))
       IS DISTINCT FROM (OLD.id, OLD.jurisdiction, OLD.category, lower(OLD.valid))
     OR OLD.used AND (NEW.rate_bp, NEW.used) IS DISTINCT FROM (OLD.rate_bp, OLD.used) THEN
    RAISE EXCEPTION 'a rate of tax is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tax_rate_is_immutable BEFORE UPDATE OR DELETE ON billing_taxrate
  FOR EACH ROW EXECUTE FUNCTION refuse_tax_rate_change();
