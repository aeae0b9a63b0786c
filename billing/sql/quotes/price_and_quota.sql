-- One query on the request path: the price, and whether any burn quota applies. A redeemed quote's price takes precedence
-- over the tenant's own, and that over the list price.
SELECT t.currency,
       coalesce((SELECT q.nano_per_hour FROM billing_quote q
                  WHERE q.lease_id = %(quoted_lease)s::text AND q.offering_id = %(offering)s AND q.currency = t.currency),
                (SELECT v.nano_per_hour FROM billing_priceversion v
                  WHERE (v.tenant_id IS NULL OR v.tenant_id = t.id) AND v.offering_id = %(offering)s
                    AND v.currency = t.currency AND v.valid @> %(now)s::timestamptz
                  ORDER BY v.tenant_id NULLS LAST LIMIT 1)),
       EXISTS (SELECT FROM tenants_quota q WHERE q.kind = 'burn' AND q.project_id = ANY(%(path)s::text[]))
  FROM tenants_tenant t WHERE t.id = %(tenant)s
