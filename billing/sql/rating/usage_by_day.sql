-- After usage_costs.sql: unit-seconds and cost by day and key. Days are passed as boundaries in the tenant's time zone, so that a
-- day of 23 or 25 hours is one day. The requesting user and the tags are those of the lease.
SELECT d.number,
       CASE %(group)s WHEN 'offering' THEN m.offering_id WHEN 'project' THEN m.project_id WHEN 'lease' THEN m.lease_id
                      WHEN 'user' THEN coalesce((SELECT l.requested_by FROM broker_lease l WHERE l.id = m.lease_id),
                                                (SELECT v.requested_by FROM broker_volume v WHERE v.id = m.lease_id), '')
                      WHEN 'tag' THEN coalesce((SELECT l.tags ->> %(tag)s FROM broker_lease l WHERE l.id = m.lease_id), '')
       END,
       coalesce(sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity)
                FILTER (WHERE m.meter = 'slice_seconds'), 0)::bigint,
       sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity * m.nano)::numeric(38)
  FROM mine m
  JOIN unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS d(s, e, number)
    ON m.s < d.e AND m.e > d.s
 GROUP BY 1, 2 ORDER BY 1, 2
