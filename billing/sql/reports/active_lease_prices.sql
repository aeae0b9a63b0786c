-- What active leases earn an hour at present, in 10⁻⁹ currency units: of the named leases, each with the price of its slice,
-- or else of all together, by currency.
SELECT CASE WHEN %(leases)s::text[] IS NULL THEN '' ELSE l.id END, tn.currency, sum(l.quantity * nano)::bigint, max(nano)
  FROM broker_lease l JOIN tenants_tenant tn ON tn.id = l.tenant_id
  LEFT JOIN billing_quote q ON q.lease_id = l.id AND q.offering_id = l.offering_id
  LEFT JOIN billing_priceversion own ON own.tenant_id = l.tenant_id AND own.offering_id = l.offering_id
   AND own.currency = tn.currency AND own.valid @> %(now)s::timestamptz
  LEFT JOIN billing_priceversion p ON p.tenant_id IS NULL AND p.offering_id = l.offering_id
   AND p.currency = tn.currency AND p.valid @> %(now)s::timestamptz
 CROSS JOIN LATERAL (SELECT CASE WHEN q.is_ceiling THEN least(q.nano_per_hour, coalesce(own.nano_per_hour, p.nano_per_hour))
                             ELSE coalesce(q.nano_per_hour, own.nano_per_hour, p.nano_per_hour) END AS nano) price
 WHERE l.state = 'active' AND nano IS NOT NULL AND (%(leases)s::text[] IS NULL OR l.id = ANY(%(leases)s::text[]))
 GROUP BY 1, 2
