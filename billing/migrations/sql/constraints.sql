-- Refuse values that no rule of the domain can work with.

ALTER TABLE billing_ratedcharge ALTER COLUMN recorded_at SET DEFAULT clock_timestamp();
ALTER TABLE billing_ledgertransfer
  ALTER COLUMN recorded_at SET DEFAULT clock_timestamp(),
  ADD CONSTRAINT transfer_named_after_ref CHECK (starts_with(idem, (ref || ':') COLLATE "C"));

-- Tiers are in order, none starts at zero, and none is dearer than the price per hour: a price is then defined at
-- every point, and nobody pays more than was held for. A package costs no more than its hours would.
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

-- Terms are in whole seconds, months and minor units; any other row would stop the month of its tenant.
ALTER TABLE billing_minimum
  ADD CONSTRAINT minimum_lasts_whole_seconds CHECK ((
    NOT isempty(valid) AND isfinite(lower(valid)) AND lower_inc(valid) AND NOT upper_inc(valid)
    AND date_trunc('second', lower(valid)) = lower(valid)
    AND (upper(valid) IS NULL
         OR isfinite(upper(valid)) AND date_trunc('second', upper(valid)) = upper(valid))) IS TRUE),
  ADD CONSTRAINT minimum_of_what_there_is CHECK (minor <= 10 ^ 15);

ALTER TABLE billing_discount
  ADD CONSTRAINT discount_of_months CHECK (first_month ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$'
    AND (last_month IS NULL OR last_month ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$')),
  ADD CONSTRAINT discount_of_a_currency CHECK ((minor IS NULL) = (currency = '')),
  ADD CONSTRAINT discount_of_what_there_is CHECK (minor IS NULL OR minor <= 10 ^ 15);

ALTER TABLE billing_campaign
  ADD CONSTRAINT campaign_of_a_currency CHECK ((minor IS NULL) = (currency = '')),
  ADD CONSTRAINT campaign_of_what_there_is CHECK (minor IS NULL OR minor <= 10 ^ 15);
