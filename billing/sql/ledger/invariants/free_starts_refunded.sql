-- Rating runs every half minute; a lease that ended longer ago than two minutes must be charged.
SELECT DISTINCT c.lease_id || '#' || c.seq FROM recent_lease l
  JOIN broker_transition n ON n.lease_id = l.id AND n.before = 'active' AND n.reason = 'preempted'
 CROSS JOIN LATERAL (
       SELECT t.seq, t.at FROM broker_transition t
        WHERE t.lease_id = n.lease_id AND t.seq < n.seq AND t.after = 'active' AND t.before <> 'active'
        ORDER BY t.seq DESC LIMIT 1) run
  JOIN billing_ratedcharge c
    ON c.lease_id = l.id AND c.seq >= run.seq AND c.seq < n.seq AND c.kind = 'usage'
  JOIN billing_priceversion v
    ON v.id = c.price_version_id AND v.free_start_s > extract(epoch FROM n.at - run.at)
 WHERE l.ended_at < %(now)s::timestamptz - interval '2 minutes'
   AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                    WHERE a.lease_id = c.lease_id AND a.seq = c.seq AND a.kind = 'adjust'
                      AND a.correction_id = '')
