-- Split a month's use of each offering into its price tiers, by line and consecutive interval: unit-seconds of the
-- tenant in the order of their intervals. Excludes use that was refunded, that a commitment covers (`covered`), and by
-- the first rules what cites a quote. Late seconds count in the month whose invoice carries them. Use at the price of a
-- quote has the price version in force beside it, and the quoted price.
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
     AND (%(quoted)s
          OR NOT EXISTS (SELECT FROM billing_quote q WHERE q.lease_id = c.lease_id AND q.offering_id = c.offering_id))
     AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                      WHERE (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part)
                          = (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
                        AND a.kind = 'adjust' AND a.correction_id = '')
)
SELECT project_id, offering_id, price_version_id, (until - unit_seconds)::bigint, until::bigint,
       (sum(unit_seconds) OVER (PARTITION BY offering_id))::bigint, in_force.version_id, in_force.most
  FROM counted
  LEFT JOIN LATERAL (
    SELECT v.version_id, q.nano_per_hour AS most
      FROM billing_quote q
      JOIN billing_tenantprice v ON v.tenant_id = q.tenant_id AND v.offering_id = q.offering_id
                                AND v.currency = q.currency AND v.valid @> counted.s
     WHERE q.lease_id = counted.lease_id AND q.is_ceiling AND q.offering_id = counted.offering_id
       AND q.price_version_id = counted.price_version_id AND v.version_id <> q.price_version_id
  ) in_force ON true
 ORDER BY offering_id, until
