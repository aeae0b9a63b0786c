-- After usage_costs.sql: seconds, unit-seconds and cost of each lease, and when it was last used.
SELECT m.lease_id, t.currency, sum(seconds * sign(quantity))::bigint, sum(seconds * quantity)::bigint,
       sum(seconds * quantity * nano)::numeric(38), max(e)
  FROM mine m JOIN tenants_tenant t ON t.id = m.tenant_id
 CROSS JOIN LATERAL (SELECT extract(epoch FROM e - s)::bigint AS seconds) used GROUP BY m.lease_id, t.currency
