-- One tenant's history: %(leases)s leases, each active for %(stretches)s stretches of %(length)s seconds.
WITH lease AS (
  INSERT INTO broker_lease
         (id, tenant_id, project_id, offering_id, name, quantity, same_node, image, command, tags, state, seq, state_since,
          generation, conditions, progress, pending_reason, created_at, end_reason, max_duration_s, quota_uses,
          requested_by, requested_by_label, unfinished_claims, version)
  SELECT %(tenant)s || '_' || n, %(tenant)s, %(project)s, (%(offerings)s::text[])[1 + n %% %(kinds)s], 'bench', 1 + n %% 2,
         false, '', '', '{}', 'released', %(stretches)s + 4, %(start)s::timestamptz, 1, '{}', '{}', '', %(start)s,
         'by_tenant', 3600, '{}', '', '', 0, 1
    FROM generate_series(1, %(leases)s) n
  RETURNING id, offering_id, quantity
), step AS (
  SELECT seq, CASE WHEN seq < 3 THEN (ARRAY['requested', 'queued', 'provisioning'])[seq + 1]
                   WHEN seq < 3 + %(stretches)s THEN 'active'
                   WHEN seq = 3 + %(stretches)s THEN 'releasing' ELSE 'released' END AS after
    FROM generate_series(0, %(stretches)s + 4) seq
), row AS (
  SELECT lease.*, step.*, lag(step.after, 1, '') OVER (PARTITION BY lease.id ORDER BY seq) AS before,
         %(start)s::timestamptz + least(greatest(seq - 3, 0), %(stretches)s) * %(length)s * interval '1 second'
           + hashtext(lease.id) %% 86400 * interval '1 second' AS at
    FROM lease CROSS JOIN step
)
INSERT INTO broker_transition
       (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id, quantity,
        price_class, generation, actor_kind, actor_id, actor_label)
SELECT id, seq, %(tenant)s, at, CASE WHEN seq > 0 THEN seq - 1 END, lag(at) OVER (PARTITION BY id ORDER BY seq),
       before, after, 'none', '', offering_id, %(project)s, quantity, 'on_demand', 1, 'system', '', ''
  FROM row
