-- Tenants with an active lease, or a minimum, and no month that holds the present moment, and since when they use
-- anything, or owe it.
SELECT tenant_id, min(since)
  FROM (SELECT tenant_id, at AS since FROM broker_lease WHERE state = 'active'
         UNION ALL
        SELECT tenant_id, lower(valid) FROM billing_minimum WHERE lower(valid) <= %(now)s
           AND (upper(valid) IS NULL OR upper(valid) > %(now)s - interval '2 months')) u
 WHERE NOT EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = u.tenant_id AND p.span @> %(now)s)
 GROUP BY tenant_id
 ORDER BY tenant_id
