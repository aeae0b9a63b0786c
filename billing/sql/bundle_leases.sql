-- What an invoice carries of each lease, line by line, the last of its stretches that is charged there, and the price
-- that the lease was promised.
WITH carried AS (
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = %(period)s
   UNION ALL  -- late seconds of a month that was closed
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num
    FROM billing_ratedcharge
   WHERE billed_period_id = %(period)s AND period_id <> billed_period_id
)
SELECT sums.*, quote.price_version_id
  FROM (SELECT lease_id, max(seq), project_id, offering_id, price_version_id, sum(unit_seconds)::bigint,
               sum(exact_num)
          FROM carried
         GROUP BY lease_id, project_id, offering_id, price_version_id) sums
  LEFT JOIN billing_quote quote ON quote.lease_id = sums.lease_id
