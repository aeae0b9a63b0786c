-- Tenants with an active lease and no month that holds the present moment, and since when they use anything.
SELECT l.tenant_id, min(l.at)
  FROM broker_lease l
 WHERE l.state = 'active'
   AND NOT EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = l.tenant_id AND p.span @> %(now)s)
 GROUP BY l.tenant_id
 ORDER BY l.tenant_id
