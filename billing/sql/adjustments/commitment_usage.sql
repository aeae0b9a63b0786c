-- List the use in a month that commitments may cover: intervals of some offerings, in seconds since 1970, and their
-- price. Excludes use that was refunded, late seconds of a closed month, and by the first rules what cites a quote.
SELECT c.lease_id, c.seq, c.part, c.project_id, c.offering_id, c.price_version_id,
       extract(epoch FROM c.s)::bigint, extract(epoch FROM c.e)::bigint,
       (c.unit_seconds / extract(epoch FROM c.e - c.s)::bigint)::bigint,
       div(c.exact_num, c.unit_seconds)::bigint
  FROM billing_ratedcharge c
 WHERE c.period_id = %(period)s AND c.billed_period_id = %(period)s
   AND c.kind = 'usage' AND c.meter = 'slice_seconds' AND c.offering_id = ANY(%(offerings)s)
   AND (%(quoted)s
        OR NOT EXISTS (SELECT FROM billing_quote q WHERE q.lease_id = c.lease_id AND q.offering_id = c.offering_id))
   AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                    WHERE (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part)
                        = (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
                      AND a.kind = 'adjust' AND a.correction_id = '')
 ORDER BY c.offering_id, c.lease_id COLLATE "C", c.s
