-- List leases that were active across the end of a still open month and were not observed since.
SELECT l.id, t.name
  FROM billing_billingperiod p
  JOIN broker_lease l ON l.tenant_id = p.tenant_id
  JOIN tenants_tenant t ON t.id = p.tenant_id
 WHERE p.label = %(label)s AND p.status = 'open' AND upper(p.span) <= %(now)s
   AND l.state = 'active' AND l.state_since < upper(p.span) AND (l.seen_at IS NULL OR l.seen_at < upper(p.span))
 ORDER BY l.id
