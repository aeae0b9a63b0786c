-- Split a month's use of each offering into its price tiers, by line and consecutive interval: unit-seconds of the
-- tenant in the order of their intervals. Excludes use that was refunded, that a quote had priced, and that a
-- commitment covers (`covered`). Late seconds count in the month whose invoice carries them.
WITH carried AS (
  SELECT lease_id, seq, part, s, project_id, offering_id, price_version_id, unit_seconds, period_id, meter, kind
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = %(period)s
   UNION ALL
  SELECT lease_id, seq, part, s, project_id, offering_id, price_version_id, unit_seconds, period_id, meter, kind
    FROM billing_ratedcharge
   WHERE billed_period_id = %(period)s AND period_id <> billed_period_id
), left_over AS (
  SELECT c.lease_id, c.seq, c.part, c.s, c.project_id, c.offering_id, c.price_version_id, c.period_id, c.meter, c.kind,
         c.unit_seconds - CASE WHEN c.period_id = %(period)s THEN coalesce(k.seconds, 0) ELSE 0 END AS unit_seconds
    FROM carried c
    LEFT JOIN jsonb_to_recordset(%(covered)s::jsonb)
           AS k (lease text, seq integer, part smallint, price bigint, seconds bigint)
      ON (k.lease, k.seq, k.part, k.price) = (c.lease_id, c.seq, c.part, c.price_version_id)
), counted AS (
  SELECT c.*,
         sum(c.unit_seconds) OVER (PARTITION BY c.offering_id ORDER BY c.s, c.lease_id COLLATE "C", c.seq) AS until
    FROM left_over c
   WHERE c.kind = 'usage'
     AND c.offering_id IN (SELECT offering_id FROM billing_priceversion WHERE model <> 'flat')
     AND NOT EXISTS (SELECT FROM billing_quote q WHERE q.lease_id = c.lease_id AND q.offering_id = c.offering_id)
     AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                      WHERE (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part)
                          = (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
                        AND a.kind = 'adjust' AND a.correction_id = '')
)
SELECT project_id, offering_id, price_version_id, (until - unit_seconds)::bigint, until::bigint,
       (sum(unit_seconds) OVER (PARTITION BY offering_id))::bigint
  FROM counted
 ORDER BY offering_id, until
