-- After usage_costs.sql: unit-seconds and cost of each line between two boundaries; split by the requesting user or by the value
-- of a tag, if asked for.
SELECT d.number, m.project_id, m.offering_id, m.version,
       CASE %(cut)s WHEN 'user' THEN coalesce((SELECT l.requested_by FROM broker_lease l WHERE l.id = m.lease_id),
                                              (SELECT v.requested_by FROM broker_volume v WHERE v.id = m.lease_id), '')
                    WHEN 'tag' THEN coalesce((SELECT l.tags ->> %(tag)s FROM broker_lease l WHERE l.id = m.lease_id), '')
                    ELSE '' END,
       coalesce(sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity)
                FILTER (WHERE m.meter = 'slice_seconds'), 0)::bigint,
       sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity * m.nano)::numeric(38)
  FROM mine m
  JOIN unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS d(s, e, number)
    ON m.s < d.e AND m.e > d.s
 GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
