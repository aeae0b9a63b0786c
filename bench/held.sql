-- One tenant's %(leases)s leases that run since an hour and hold money in a budget's month and in the wallet.
WITH lease AS (
  INSERT INTO broker_lease
         (id, tenant_id, project_id, offering_id, name, quantity, same_node, image, command, tags, state, seq, state_since,
          generation, conditions, progress, pending_reason, created_at, active_at, ends_at, seen_at, end_reason,
          max_duration_s, quota_uses, requested_by, requested_by_label, unfinished_claims, version)
  SELECT 'lse_' || right(%(tenant)s, 10) || lpad(n::text, 16, '0'), %(tenant)s, %(project)s, %(offering)s, 'job-' || n, 1, false, '', '', '{}',
         'active', 1, %(begun)s, 1, '{}', '{}', '', %(begun)s, %(begun)s, %(now)s::timestamptz + interval '40 hours',
         %(now)s, 'none', 147600, '{}', '', '', 0, 1
    FROM generate_series(1, %(leases)s) n
  RETURNING id
), told AS (
  INSERT INTO broker_transition
         (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id,
          quantity, price_class, generation, actor_kind, actor_id, actor_label)
  SELECT id, seq, %(tenant)s, %(begun)s::timestamptz, CASE seq WHEN 1 THEN 0 END,
         CASE seq WHEN 1 THEN %(begun)s::timestamptz END, CASE seq WHEN 1 THEN 'requested' ELSE '' END,
         CASE seq WHEN 1 THEN 'active' ELSE 'requested' END, 'none', '', %(offering)s, %(project)s, 1, 'on_demand', 1,
         'system', '', ''
    FROM lease CROSS JOIN generate_series(0, 1) seq ORDER BY id, seq
)
INSERT INTO billing_hold (id, tenant_id, lease_id, currency, opened_at, checked_at, seq, covers_until)
SELECT 'hld' || substr(id, 4), %(tenant)s, id, 'EUR', %(begun)s, %(now)s, 1, %(now)s::timestamptz + interval '1 hour'
  FROM lease
