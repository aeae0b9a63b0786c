"""Walls around what a month carries beside its seconds, and what of it never changes."""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

# Points in order, none at nought, each no dearer than the price of an hour: then tiers tile, and nobody ever pays more
# than what was held for. A package costs no more than its hours would.
TIERS = """
CREATE FUNCTION price_tiles(model text, nano bigint, starts bigint[], prices bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN model = 'flat' THEN starts IS NULL AND prices IS NULL
    WHEN starts IS NULL OR prices IS NULL OR cardinality(starts) = 0
      OR cardinality(starts) <> cardinality(prices)
      OR array_position(starts, NULL) IS NOT NULL OR array_position(prices, NULL) IS NOT NULL THEN false
    WHEN model = 'package' THEN cardinality(starts) = 1 AND starts[1] > 0 AND prices[1] >= 0
                            AND prices[1]::numeric * 3600 <= starts[1]::numeric * nano
    ELSE model IN ('graduated', 'volume') AND starts[1] > 0
     AND coalesce((SELECT bool_and(here > before) FROM (
           SELECT s AS here, lag(s) OVER (ORDER BY at) AS before FROM unnest(starts) WITH ORDINALITY AS t (s, at)) t
          WHERE before IS NOT NULL), true)
     AND (SELECT bool_and(p BETWEEN 0 AND nano) FROM unnest(prices) AS p)
  END
$$;
ALTER TABLE billing_priceversion ADD CONSTRAINT tiers_tile
  CHECK (price_tiles(model::text, nano_per_hour, tier_from_s, tier_nano) IS TRUE);
"""
NO_TIERS = """
ALTER TABLE billing_priceversion DROP CONSTRAINT tiers_tile;
DROP FUNCTION price_tiles(text, bigint, bigint[], bigint[]);
"""
# As 0028 has it; by what tiers a price asks is as fixed.
FIXED = """
CREATE OR REPLACE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid),
                          NEW.free_start_s{new})
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid),
                         OLD.free_start_s{old})
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
     OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""
TIERED = FIXED.format(
    new=", NEW.model, NEW.tier_from_s, NEW.tier_nano", old=", OLD.model, OLD.tier_from_s, OLD.tier_nano"
)
# Whose a row is, the walls say. A discount only ends, and not before a month that was reckoned with it; a campaign only ends, and counts upwards.
TERMS = """
CREATE FUNCTION refuse_discount_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{last_month,tenant_id}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{last_month,tenant_id}'::text[]
     OR coalesce(NEW.last_month, 'for good') > coalesce(OLD.last_month, 'for good') THEN
    RAISE EXCEPTION 'discount % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM billing_monthcharge c JOIN billing_billingperiod p ON p.id = c.billed_period_id
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
  IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
     OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'minimum % only ends', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER minimum_is_kept BEFORE UPDATE OR DELETE ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_minimum_change();
"""
NO_TERMS = "".join(
    f"DROP TRIGGER {each}_is_kept ON billing_{each}; DROP FUNCTION refuse_{each}_change();\n"
    for each in ("discount", "campaign", "minimum")
)


class Migration(migrations.Migration):
    dependencies = [("billing", "0034_month_charges")]
    operations = [
        tenant_wall("billing_monthcharge"),
        append_only("billing_monthcharge"),
        tenant_wall("billing_discount"),
        tenant_wall("billing_minimum"),
        migrations.RunSQL(TIERS, NO_TIERS),
        migrations.RunSQL(TIERED, FIXED.format(new="", old="")),
        migrations.RunSQL(TERMS, NO_TERMS),
    ]
