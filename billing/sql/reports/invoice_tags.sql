-- List the tag names of the leases on an invoice.
WITH carried AS (
  SELECT lease_id FROM billing_ratedcharge WHERE period_id = %(period)s AND billed_period_id = %(period)s
   UNION
  SELECT lease_id FROM billing_ratedcharge WHERE billed_period_id = %(period)s AND period_id <> billed_period_id
)
SELECT DISTINCT tag.name
  FROM carried c
  JOIN broker_lease l ON l.id = c.lease_id
 CROSS JOIN LATERAL jsonb_object_keys(l.tags) AS tag (name)
 ORDER BY tag.name
