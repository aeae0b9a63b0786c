-- Sum the charges of an offering in one currency between two moments, by tenant or for one tenant; separately, the
-- part that the tested price would not change: what a quote had promised for less and, for a list price, what tenants
-- pay by their own prices.
SELECT t.id, t.name,
       q.id IS NOT NULL AND NOT (q.is_ceiling AND q.nano_per_hour >= %(nano)s)
         OR (%(tenant)s::text IS NULL AND v.tenant_id IS NOT NULL),
       count(DISTINCT c.lease_id), sum(cut.seconds * rate.quantity)::bigint,
       sum(cut.seconds * rate.quantity * rate.nano)::numeric(38)
  FROM billing_ratedcharge c
  JOIN tenants_tenant t ON t.id = c.tenant_id AND t.currency = %(currency)s AND (%(tenant)s::text IS NULL OR t.id = %(tenant)s)
  JOIN billing_priceversion v ON v.id = c.price_version_id
  LEFT JOIN billing_quote q ON q.lease_id = c.lease_id AND q.offering_id = c.offering_id
 CROSS JOIN LATERAL (
   SELECT extract(epoch FROM least(c.e, %(last)s) - greatest(c.s, %(first)s))::bigint AS seconds
 ) cut
 CROSS JOIN LATERAL (
   SELECT c.unit_seconds / extract(epoch FROM c.e - c.s)::bigint AS quantity, div(c.exact_num, c.unit_seconds) AS nano
 ) rate
 WHERE c.offering_id = %(offering)s AND c.e > %(first)s AND c.s < %(last)s
   AND c.period_id = ANY(ARRAY(SELECT p.id FROM billing_billingperiod p
                                WHERE p.span && tstzrange(%(first)s, %(last)s)))
 GROUP BY 1, 2, 3
 ORDER BY 1, 3
