-- List tenants and month ends where a lease or a volume must be split first.
SELECT p.tenant_id, upper(p.span)
  FROM billing_billingperiod p
 WHERE p.tenant_id = ANY(%(tenants)s) AND p.label = %(label)s AND p.status = 'open'
   AND (EXISTS (SELECT FROM broker_lease l
                 WHERE l.tenant_id = p.tenant_id AND l.state = 'active' AND l.state_since < upper(p.span))
     OR EXISTS (SELECT FROM broker_volume v WHERE v.tenant_id = p.tenant_id AND v.used_at < upper(p.span)))
 ORDER BY p.tenant_id
