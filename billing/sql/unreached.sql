-- Tenants with an active lease, a minimum, or a volume since storage is sold, and no month that holds the present moment,
-- and since when they use anything, or owe it.
SELECT tenant_id, min(since)
  FROM (SELECT tenant_id, at AS since FROM broker_lease WHERE state = 'active'
         UNION ALL
        SELECT tenant_id, lower(valid) FROM billing_minimum WHERE lower(valid) <= %(now)s
           AND (upper(valid) IS NULL OR upper(valid) > %(now)s - interval '2 months')
         UNION ALL
        SELECT tenant_id, lower(valid) FROM billing_commitment WHERE lower(valid) <= %(now)s
           AND (upper(valid) IS NULL OR upper(valid) > %(now)s - interval '2 months')
         UNION ALL
        SELECT v.tenant_id, greatest(v.used_at, sold.since)
          FROM broker_volume v
         CROSS JOIN (SELECT min(lower(p.valid)) AS since
                       FROM billing_priceversion p JOIN broker_offering o ON o.id = p.offering_id
                      WHERE o.state = 'metered' AND p.tenant_id IS NULL) sold
         WHERE v.state = 'ready' AND v.used_at <= %(now)s AND sold.since <= %(now)s) u
 WHERE NOT EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = u.tenant_id AND p.span @> %(now)s)
 GROUP BY tenant_id
 ORDER BY tenant_id
