-- List the transitions of some leases, up to the end of each one's last charged interval.
SELECT t.lease_id, t.seq, t.at, t.after, t.offering_id, t.project_id, t.quantity,
       t.reason = 'preempted'
  FROM unnest(%(leases)s::text[], %(lasts)s::int[]) AS wanted(id, last)
  JOIN broker_transition t ON t.lease_id = wanted.id AND t.seq <= wanted.last + 1
 ORDER BY t.lease_id, t.seq
