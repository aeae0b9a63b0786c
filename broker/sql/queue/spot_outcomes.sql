-- By pool: spot leases that were active since a moment, and how many of them were preempted since then.
SELECT o.gpu_model_id, o.region, count(*),
       count(*) FILTER (WHERE EXISTS (
         SELECT FROM broker_reclaimnotice n
          WHERE n.lease_id = l.id AND n.state = 'preempted' AND n.state_at >= %(since)s))
  FROM broker_lease l JOIN broker_offering o ON o.id = l.offering_id
 WHERE o.price_class = 'spot' AND (l.active_at IS NOT NULL OR l.active_seconds > 0)
   AND (l.ended_at IS NULL OR l.ended_at >= %(since)s)
 GROUP BY o.gpu_model_id, o.region
