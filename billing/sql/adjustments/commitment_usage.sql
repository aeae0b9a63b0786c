-- List the use in a month that commitments may cover: intervals of some offerings, in seconds since 1970, their price,
-- and the month whose invoice carries them, one of `billed`. Seconds that a correction added count. Excludes use that
-- was refunded, and by the first rules what cites a quote or was added.
SELECT c.lease_id, c.seq, c.part, c.correction_id, c.project_id, c.offering_id, c.price_version_id,
       extract(epoch FROM c.s)::bigint, extract(epoch FROM c.e)::bigint,
       (c.unit_seconds / extract(epoch FROM c.e - c.s)::bigint)::bigint,
       div(c.exact_num, c.unit_seconds)::bigint, c.billed_period_id
  FROM billing_ratedcharge c
 WHERE c.period_id = %(period)s AND c.billed_period_id = ANY(%(billed)s)
   AND c.meter = 'slice_seconds' AND c.offering_id = ANY(%(offerings)s) AND c.unit_seconds > 0
   AND CASE WHEN c.kind = 'usage'
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
 ORDER BY c.offering_id, c.lease_id COLLATE "C", c.s
