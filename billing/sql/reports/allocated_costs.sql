-- Sum the amounts of an invoice by line and by the user who requested the lease or volume, or by one tag of the lease.
WITH carried AS (
  SELECT lease_id, project_id, offering_id, price_version_id, unit_seconds, exact_num
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = %(period)s AND correction_id <> ALL(%(without)s)
   UNION ALL  -- late seconds of a month that was closed
  SELECT lease_id, project_id, offering_id, price_version_id, unit_seconds, exact_num
    FROM billing_ratedcharge
   WHERE billed_period_id = %(period)s AND period_id <> billed_period_id AND correction_id <> ALL(%(without)s)
)
SELECT c.project_id, c.offering_id, c.price_version_id,
       CASE %(by)s WHEN 'project' THEN c.project_id WHEN 'user' THEN coalesce(l.requested_by, v.requested_by) ELSE l.tags ->> %(tag)s END AS key,
       sum(c.unit_seconds)::bigint, sum(c.exact_num)
  FROM carried c
  LEFT JOIN broker_lease l ON l.id = c.lease_id
  LEFT JOIN broker_volume v ON v.id = c.lease_id
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
