-- Whose months cannot be cut without touching a lease or a volume first, and where each of them ends.
SELECT p.tenant_id, upper(p.span)
  FROM billing_billingperiod p
 WHERE p.tenant_id = ANY(%(tenants)s) AND p.label = %(label)s AND p.status = 'open'
   AND (EXISTS (SELECT FROM broker_lease l
                 WHERE l.tenant_id = p.tenant_id AND l.state = 'active' AND l.at < upper(p.span))
     OR EXISTS (SELECT FROM broker_volume v WHERE v.tenant_id = p.tenant_id AND v.used_at < upper(p.span)))
 ORDER BY p.tenant_id
