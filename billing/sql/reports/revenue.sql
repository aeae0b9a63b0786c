-- Revenue of active time by span and currency: the same seconds × price as rating, clipped to each span; the amount counts
-- 1/(3600·10⁹) of a unit.
WITH span AS (
  SELECT * FROM unnest(%(firsts)s::timestamptz[], %(lasts)s::timestamptz[]) WITH ORDINALITY AS s(first, last, n)
), silent AS MATERIALIZED (
  SELECT a.lease_id, min(c.unreachable_since) AS since
    FROM broker_cluster c JOIN broker_node n ON n.cluster_id = c.id JOIN broker_gpu g ON g.node_id = n.id
    JOIN broker_allocation a ON a.gpu_id = g.id AND a.released_at IS NULL AND a.leaving_since IS NULL
   WHERE c.unreachable_since IS NOT NULL GROUP BY 1
), active AS (  -- what is active counts no longer than it would be charged if it ended now, as in usage_costs.sql
  SELECT id AS lease_id, tenant_id, offering_id, quantity, state_since AS since,
         greatest(state_since, date_trunc('second', least('infinity', ends_at,
           CASE WHEN seen_at IS NOT NULL AND conditions ? 'unreachable' THEN seen_at
                WHEN silent.since IS NOT NULL THEN greatest(silent.since, coalesce(seen_at, state_since)) END))) AS until
    FROM broker_lease LEFT JOIN silent ON silent.lease_id = id WHERE state = 'active'
   UNION ALL
  SELECT lease_id, tenant_id, offering_id, quantity, prev_at, at FROM broker_transition
   WHERE before = 'active' AND at > %(oldest)s::timestamptz
), price AS MATERIALIZED (
  SELECT p.offering_id, p.currency, p.valid, p.nano_per_hour, 0::bigint AS rate_card FROM billing_priceversion p
   WHERE p.tenant_id IS NULL AND p.valid && tstzrange(%(oldest)s::timestamptz, %(newest)s::timestamptz)
   UNION ALL
  SELECT offering_id, currency, valid, nano_per_hour, card_id FROM billing_tenantprice WHERE card_id IS NOT NULL
), own AS MATERIALIZED (
  SELECT DISTINCT tenant_id, offering_id, currency, rate_card_id AS rate_card
    FROM billing_priceversion WHERE tenant_id IS NOT NULL
), stretch AS (
  SELECT n, tn.currency, active.offering_id, active.quantity, greatest(since, first) AS s, least(until, last) AS e,
         q.nano_per_hour AS promised, q.is_ceiling AS ceiling, coalesce(own.rate_card, 0) AS rate_card
    FROM active JOIN span ON since < last AND until > first JOIN tenants_tenant tn ON tn.id = active.tenant_id
    LEFT JOIN billing_quote q ON q.lease_id = active.lease_id AND q.offering_id = active.offering_id
    LEFT JOIN own ON own.tenant_id = tn.id AND own.offering_id = active.offering_id AND own.currency = tn.currency
), priced AS (
  SELECT n, currency, quantity, s, e, promised AS nano FROM stretch WHERE promised IS NOT NULL
   UNION ALL
  SELECT n, stretch.currency, quantity, greatest(s, lower(p.valid)), least(e, upper(p.valid)), p.nano_per_hour
    FROM stretch JOIN price p ON p.offering_id = stretch.offering_id AND p.currency = stretch.currency
     AND p.rate_card = stretch.rate_card AND p.valid && tstzrange(s, e)
   WHERE promised IS NULL
   UNION ALL  -- what a lower price in force takes off a quoted one
  SELECT n, stretch.currency, quantity, greatest(s, lower(p.valid)), least(e, upper(p.valid)), p.nano_per_hour - promised
    FROM stretch JOIN price p ON p.offering_id = stretch.offering_id AND p.currency = stretch.currency
     AND p.rate_card = stretch.rate_card AND p.valid && tstzrange(s, e)
   WHERE ceiling AND p.nano_per_hour < promised)
SELECT n, currency, sum(extract(epoch FROM e - s)::numeric(38) * quantity * nano)::numeric(38)
  FROM priced GROUP BY 1, 2
