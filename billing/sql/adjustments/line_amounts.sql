-- Sum the seconds of each line of a month's invoice, before adjustments of the month.
SELECT c.project_id, c.offering_id, c.price_version_id, sum(c.unit_seconds)::bigint, sum(c.exact_num)
  FROM (SELECT project_id, offering_id, price_version_id, unit_seconds, exact_num
          FROM billing_ratedcharge
         WHERE period_id = %(period)s AND billed_period_id = %(period)s
         UNION ALL  -- late seconds of a month that was closed
        SELECT project_id, offering_id, price_version_id, unit_seconds, exact_num
          FROM billing_ratedcharge
         WHERE billed_period_id = %(period)s AND period_id <> billed_period_id) c
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
