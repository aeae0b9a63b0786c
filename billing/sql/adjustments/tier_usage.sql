-- Split a month's use of each offering into its price tiers, by line and consecutive interval: unit-seconds of the
-- tenant in the order of their intervals, those on the invoice of `here` after those on earlier ones. Seconds that a
-- correction added count. Excludes use that was refunded, and that a commitment covers (`covered`). By the first rules,
-- what cites a quote or was added is excluded, and late seconds count in the month whose invoice carries them. Use at
-- the price of a quote has the price version in force beside it, and the quoted price.
WITH carried AS (
  SELECT *, billed_period_id = %(here)s AND period_id <> billed_period_id AS late
    FROM billing_ratedcharge
   WHERE period_id = %(period)s AND billed_period_id = ANY(%(billed)s)
   UNION ALL
  SELECT *, false
    FROM billing_ratedcharge
   WHERE NOT %(current)s AND billed_period_id = %(period)s AND period_id <> billed_period_id
), left_over AS (
  SELECT c.lease_id, c.seq, c.part, c.s, c.project_id, c.offering_id, c.price_version_id, c.period_id, c.meter, c.kind,
         c.correction_id, c.billed_period_id = %(here)s AS here, c.late,
         c.unit_seconds - CASE WHEN c.period_id = %(period)s THEN coalesce(k.seconds, 0) ELSE 0 END AS unit_seconds
    FROM carried c
    LEFT JOIN jsonb_to_recordset(%(covered)s::jsonb)
           AS k (lease text, seq integer, part smallint, price bigint, correction text, seconds bigint)
      ON (k.lease, k.seq, k.part, k.price, k.correction)
       = (c.lease_id, c.seq, c.part, c.price_version_id, c.correction_id)
   WHERE c.unit_seconds > 0
     AND c.offering_id IN (SELECT offering_id FROM billing_priceversion WHERE model <> 'flat')
), counted AS (
  SELECT c.*,
         sum(c.unit_seconds) OVER (PARTITION BY c.offering_id ORDER BY c.late, c.s, c.lease_id COLLATE "C", c.seq) AS until
    FROM left_over c
   WHERE CASE WHEN c.kind = 'usage'
              THEN NOT EXISTS (SELECT FROM billing_ratedcharge a
                                WHERE (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part)
                                    = (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
                                  AND a.kind = 'adjust' AND a.correction_id = '')
                   AND (%(current)s OR NOT EXISTS (SELECT FROM billing_quote q
                                                    WHERE q.lease_id = c.lease_id AND q.offering_id = c.offering_id))
              ELSE %(current)s  -- a correction of a price refunds and charges again, and adds no seconds
                   AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                                    WHERE a.lease_id = c.lease_id AND a.correction_id = c.correction_id
                                      AND a.unit_seconds < 0) END
), position AS (
  SELECT *, until - unit_seconds AS since, sum(unit_seconds) OVER (PARTITION BY offering_id) AS total FROM counted
)
SELECT project_id, offering_id, price_version_id, since::bigint, until::bigint, total::bigint,
       in_force.version_id, in_force.most
  FROM position
  LEFT JOIN LATERAL (
    SELECT v.version_id, q.nano_per_hour AS most
      FROM billing_quote q
      JOIN billing_tenantprice v ON v.tenant_id = q.tenant_id AND v.offering_id = q.offering_id
                                AND v.currency = q.currency AND v.valid @> position.s
     WHERE q.lease_id = position.lease_id AND q.is_ceiling AND q.offering_id = position.offering_id
       AND q.price_version_id = position.price_version_id AND v.version_id <> q.price_version_id
  ) in_force ON true
 WHERE here
 ORDER BY offering_id, until
