-- List tenants with a monthly charge or liability that no event announces and who lack a billing period for it: for
-- its first moment, or for its last until now. Further kinds of such charges are added to `owed`.
WITH owed (tenant_id, since, until) AS (  -- no `until`: continues for good
  SELECT tenant_id, state_since, NULL::timestamptz FROM broker_lease WHERE state = 'active'
   UNION ALL
  SELECT tenant_id, lower(valid), upper(valid) FROM billing_minimum
   UNION ALL
  SELECT tenant_id, lower(valid), upper(valid) FROM billing_commitment
   UNION ALL
  SELECT v.tenant_id, greatest(v.used_at, sold.since), NULL
    FROM broker_volume v
   CROSS JOIN (SELECT min(lower(p.valid)) AS since
                 FROM billing_priceversion p JOIN broker_offering o ON o.id = p.offering_id
                WHERE o.state = 'metered' AND p.tenant_id IS NULL) sold
   WHERE v.state = 'ready'
), wanted AS (
  SELECT tenant_id, min(since) AS since, max(least(coalesce(until - interval '1 second', %(now)s), %(now)s)) AS last
    FROM owed
   WHERE since <= %(now)s
   GROUP BY tenant_id
)
SELECT tenant_id, since, last
  FROM wanted w
 WHERE NOT EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = w.tenant_id AND p.span @> w.since)
    OR NOT EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = w.tenant_id AND p.span @> w.last)
 ORDER BY tenant_id
