SELECT l.id FROM broker_lease l JOIN tenants_tenant tn ON tn.id = l.tenant_id
 WHERE l.state = 'active' AND NOT EXISTS (
       SELECT FROM billing_quote q WHERE q.lease_id = l.id AND q.offering_id = l.offering_id) AND NOT EXISTS (
       SELECT FROM billing_priceversion p WHERE p.offering_id = l.offering_id
          AND (p.tenant_id IS NULL OR p.tenant_id = l.tenant_id)
          AND p.currency = tn.currency AND p.valid @> %(now)s::timestamptz)
