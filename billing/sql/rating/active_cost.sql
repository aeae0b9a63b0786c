-- What the active leases of each project cost an hour at today's prices, in 10⁻⁹ currency units.
SELECT l.project_id, coalesce(sum(l.quantity * price.nano), 0)::bigint
  FROM broker_lease l
  LEFT JOIN billing_quote q ON q.lease_id = l.id AND q.offering_id = l.offering_id
  LEFT JOIN billing_tenantprice v
    ON v.tenant_id = l.tenant_id AND v.offering_id = l.offering_id AND v.currency = %(currency)s
   AND v.valid @> %(now)s::timestamptz
 CROSS JOIN LATERAL (SELECT CASE WHEN q.is_ceiling THEN least(q.nano_per_hour, v.nano_per_hour)
                             ELSE coalesce(q.nano_per_hour, v.nano_per_hour) END AS nano) price
 WHERE l.state = 'active' AND l.tenant_id = %(tenant)s
   AND (%(projects)s::text[] IS NULL OR l.project_id = ANY(%(projects)s::text[]))
 GROUP BY l.project_id
