-- What an invoice carries of each lease or volume, line by line, the last of its stretches that is charged there, and the price
-- that the lease was promised. Of what was given back, it is the last of the run that was taken back.
WITH carried AS (
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num, meter,
         CASE WHEN correction_id = '' THEN kind ELSE 'corrected' END AS kind
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = %(period)s
   UNION ALL  -- late seconds of a month that was closed
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num, meter,
         CASE WHEN correction_id = '' THEN kind ELSE 'corrected' END AS kind
    FROM billing_ratedcharge
   WHERE billed_period_id = %(period)s AND period_id <> billed_period_id
), known AS (
  SELECT carried.*, CASE WHEN kind = 'adjust'
         THEN (SELECT min(t.seq) - 1 FROM broker_transition t
                WHERE t.lease_id = carried.lease_id AND t.seq > carried.seq AND t.after <> 'active')
         ELSE seq END AS last
    FROM carried
)
SELECT sums.*, quote.price_version_id
  FROM (SELECT lease_id, max(last), project_id, offering_id, price_version_id, sum(unit_seconds)::bigint,
               sum(exact_num), max(meter)
          FROM known
         GROUP BY lease_id, project_id, offering_id, price_version_id) sums
  LEFT JOIN billing_quote quote ON quote.lease_id = sums.lease_id
