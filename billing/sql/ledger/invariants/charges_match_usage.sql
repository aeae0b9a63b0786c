-- Rating runs every half minute; a lease that ended longer ago than two minutes must be charged.
SELECT l.id FROM recent_lease l
  LEFT JOIN LATERAL (
       SELECT sum(extract(epoch FROM n.at - t.at) * t.quantity) AS seconds
         FROM broker_transition t JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
        WHERE t.lease_id = l.id AND t.after = 'active') used ON true
  LEFT JOIN LATERAL (
       SELECT sum(c.unit_seconds) AS seconds FROM billing_ratedcharge c
        WHERE c.lease_id = l.id AND c.kind = 'usage') charged ON true
 WHERE l.ended_at < %(now)s::timestamptz - interval '2 minutes'
   AND coalesce(used.seconds, 0) <> coalesce(charged.seconds, 0)
