-- The lives of some leases, each up to the transition that ended its last charged stretch.
SELECT t.lease_id, t.seq, t.at, t.after, t.offering_id, t.project_id, t.quantity,
       t.reason = 'preempted'
  FROM unnest(%(leases)s::text[], %(lasts)s::int[]) AS wanted(id, last)
  JOIN broker_transition t ON t.lease_id = wanted.id AND t.seq <= wanted.last + 1
 ORDER BY t.lease_id, t.seq
