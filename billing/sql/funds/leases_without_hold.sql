-- Leases queued without the gate, by an older release or by settings: they count all the same.
SELECT DISTINCT l.id, l.tenant_id
  FROM billing_budget b
  JOIN tenants_project p ON p.path @> ARRAY[b.project_id]::varchar[]
  JOIN broker_lease l ON l.project_id = p.id AND l.state IN ('queued', 'provisioning', 'active')
 WHERE NOT EXISTS (SELECT FROM billing_hold h WHERE h.lease_id = l.id)
 UNION
SELECT l.id, l.tenant_id
  FROM billing_accountterms t JOIN broker_lease l ON l.tenant_id = t.tenant_id
 WHERE t.payment = 'prepaid' AND l.state IN ('queued', 'provisioning', 'active')
   AND NOT EXISTS (SELECT FROM billing_hold h WHERE h.lease_id = l.id AND h.covers_until IS NOT NULL)
 LIMIT %(most)s
