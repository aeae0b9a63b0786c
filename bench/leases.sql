-- One tenant's leases: %(over)s that have ended, %(live)s that run or wait, each with its ledger and its line in the
-- audit trail; the running ones lie on GPUs, seven to a GPU. Their ids are numbered from %(numbered_from)s.
WITH lease AS (
  SELECT 'lse_' || lpad((%(numbered_from)s + n)::text, 26, '0') AS id, n,
         CASE WHEN n <= %(over)s THEN 'released' WHEN n <= %(over)s + %(live)s - %(waiting)s THEN 'active' ELSE 'queued'
         END AS state,
         (%(offerings)s::text[])[1 + n %% %(kinds)s] AS offering_id,
         (%(projects)s::text[])[1 + n %% %(places)s] AS project_id,
         date_trunc('second', %(now)s::timestamptz)
           - CASE WHEN n <= %(over)s THEN n %% 1400 + 24 ELSE n %% 24 END * interval '1 hour' AS asked
    FROM generate_series(1, %(over)s + %(live)s) n
), made AS (
  INSERT INTO broker_lease
         (id, tenant_id, project_id, offering_id, name, quantity, same_node, image, command, tags, state, seq, state_since,
          generation, conditions, progress, pending_reason, created_at, active_at, ended_at, ends_at, end_reason,
          max_duration_s, quota_uses, requested_by, requested_by_label, unfinished_claims, version)
  SELECT id, %(tenant)s, project_id, offering_id, 'job-' || n, 1, false, 'pytorch/2.9', '', '{}', state,
         CASE state WHEN 'released' THEN 5 WHEN 'active' THEN 3 ELSE 1 END,
         CASE state WHEN 'released' THEN asked + interval '3 hours' WHEN 'active' THEN asked + interval '8 seconds'
                    ELSE asked END,
         1, '{}', '{}', CASE state WHEN 'queued' THEN 'Waits for one free slice.' ELSE '' END, asked,
         CASE WHEN state <> 'queued' THEN asked + interval '8 seconds' END,
         CASE WHEN state = 'released' THEN asked + interval '3 hours' END,
         CASE WHEN state <> 'queued' THEN asked + interval '40 hours' END,
         CASE state WHEN 'released' THEN 'by_tenant' ELSE 'none' END, 144000, '{}', %(user)s, %(email)s, 0, 1
    FROM lease
  RETURNING 1
), step AS (
  SELECT lease.*, s.seq, s.after, s.before, lease.asked + s.later AS at, lease.asked + s.earlier AS prev_at
    FROM lease JOIN (VALUES
      (0, 'requested', '', interval '0', NULL::interval), (1, 'queued', 'requested', '0', '0'),
      (2, 'provisioning', 'queued', '2 seconds', '0'), (3, 'active', 'provisioning', '8 seconds', '2 seconds'),
      (4, 'releasing', 'active', '3 hours', '8 seconds'), (5, 'released', 'releasing', '3 hours', '3 hours')
    ) AS s(seq, after, before, later, earlier)
      ON s.seq <= CASE lease.state WHEN 'released' THEN 5 WHEN 'active' THEN 3 ELSE 1 END
), told AS (
  INSERT INTO broker_transition
         (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id,
          quantity, price_class, generation, actor_kind, actor_id, actor_label)
  SELECT id, seq, %(tenant)s, at, CASE WHEN seq > 0 THEN seq - 1 END, prev_at, before, after,
         CASE WHEN seq > 3 THEN 'by_tenant' ELSE 'none' END, 'a step', offering_id, project_id, 1, 'on_demand', 1,
         'user', %(user)s, %(email)s
    FROM step ORDER BY n, seq
  RETURNING 1
), noted AS (
  INSERT INTO tenants_auditevent
         (id, tenant_id, at, actor_kind, actor_id, actor_label, action, subject_id, subject_label, detail, request_id)
  SELECT 'evt_' || lpad((%(numbered_from)s + n)::text, 26, '0'), %(tenant)s, asked, 'user', %(user)s, %(email)s, 'lease.request', id,
         'job-' || n, jsonb_build_object('project', project_id, 'quantity', 1, 'max_duration_s', 144000), ''
    FROM lease
  RETURNING 1
)
INSERT INTO broker_allocation
       (id, tenant_id, lease_id, generation, gpu_id, placement, profile, isolation, may_share, held_at)
SELECT 'alc_' || lpad((%(numbered_from)s + n)::text, 26, '0'), %(tenant)s, id, 1,
       (%(gpus)s::text[])[1 + (n - %(over)s - 1) / 7],
       int4range((n - %(over)s - 1) %% 7, (n - %(over)s - 1) %% 7 + 1), '1g.10gb', 'hardware', false, asked
  FROM lease WHERE state = 'active'
