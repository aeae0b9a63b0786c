-- List each lease or volume on an invoice, by line, with its last interval charged there and the price promised to the
-- lease. Of refunded use, it is the last interval of the preempted run.
WITH carried AS (
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num, meter,
         CASE WHEN correction_id = '' THEN kind ELSE 'corrected' END AS kind
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = %(period)s AND correction_id <> ALL(%(without)s)
   UNION ALL  -- late seconds of a month that was closed
  SELECT lease_id, project_id, offering_id, price_version_id, seq, unit_seconds, exact_num, meter,
         CASE WHEN correction_id = '' THEN kind ELSE 'corrected' END AS kind
    FROM billing_ratedcharge
   WHERE billed_period_id = %(period)s AND period_id <> billed_period_id AND correction_id <> ALL(%(without)s)
), known AS (
  SELECT carried.*, CASE WHEN kind = 'adjust'
         THEN (SELECT min(t.seq) - 1 FROM broker_transition t
                WHERE t.lease_id = carried.lease_id AND t.seq > carried.seq AND t.after <> 'active')
         ELSE seq END AS last
    FROM carried
)
SELECT sums.*, quote.price_version_id, quote.is_ceiling
  FROM (SELECT lease_id, max(last), project_id, offering_id, price_version_id, sum(unit_seconds)::bigint,
               sum(exact_num), max(meter)
          FROM known
         GROUP BY lease_id, project_id, offering_id, price_version_id) sums
  LEFT JOIN billing_quote quote ON quote.lease_id = sums.lease_id
