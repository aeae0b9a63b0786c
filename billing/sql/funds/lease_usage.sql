-- Sum the completed active time of leases in unit-seconds, and what of it is charged by month, as of one moment.
-- Refunded use counts as charged.
SELECT t.lease_id, sum(extract(epoch FROM n.at - t.at)::bigint * t.quantity)::bigint, NULL::bigint, 0::numeric
  FROM broker_transition t JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
 WHERE t.lease_id = ANY(%(leases)s::text[]) AND t.after = 'active'
 GROUP BY t.lease_id
 UNION ALL
SELECT c.lease_id, coalesce(sum(c.unit_seconds) FILTER (WHERE c.kind = 'usage'), 0)::bigint, c.period_id,
       sum(c.exact_num)
  FROM billing_ratedcharge c
 WHERE c.lease_id = ANY(%(leases)s::text[])
 GROUP BY c.lease_id, c.period_id
