-- One tenant's random ledger: %(leases)s leases, each of up to four runs with pauses, ticks, other offerings and other
-- quantities in between, some taken back. All chance is a hash of the lease, so that the same seed is the same ledger.
WITH lease AS (
  SELECT 'lse_' || %(wave)s || right(%(tenant)s, 8) || lpad(n::text, 17, '0') AS id
    FROM generate_series(1, %(leases)s) n
), made AS (
  INSERT INTO broker_lease
         (id, tenant_id, project_id, offering_id, name, quantity, same_node, image, command, tags, state, seq, state_since,
          generation, conditions, progress, pending_reason, created_at, end_reason, max_duration_s, quota_uses,
          requested_by, requested_by_label, unfinished_claims, version)
  SELECT id, %(tenant)s, (%(projects)s::text[])[1], (%(offerings)s::text[])[1], 'bench', 1, false, '', '', '{}',
         'released', 9, %(since)s, 1, '{}', '{}', '', %(since)s, 'by_tenant', 3600, '{}', '', '', 0, 1
    FROM lease
), drawn AS (
  SELECT id, abs(hashtextextended(id, %(seed)s) %% 4) + 1 AS runs, abs(hashtextextended('at' || id, %(seed)s)) AS chance
    FROM lease
), step AS (
  SELECT id, runs, seq, abs(hashtextextended(seq || id, %(seed)s)) AS h,
         %(since)s::timestamptz + chance %% %(seconds)s * interval '1 second' AS asked
    FROM drawn CROSS JOIN LATERAL generate_series(0, 2 * runs + 1) seq
), state AS (
  SELECT *, CASE WHEN seq = 0 THEN 'requested' WHEN seq > 2 * runs THEN 'released'
                 WHEN seq %% 2 = 1 OR seq < 2 * runs AND h %% 10 < 3 THEN 'active' ELSE 'stopped' END AS after,
         CASE WHEN seq = 0 OR seq > 2 * runs THEN 0 WHEN h %% 10 = 9 THEN h / 10 %% 2 WHEN h %% 10 = 8 THEN h / 10 %% 200000
              ELSE h / 10 %% 9000 END AS later
    FROM step
), row AS (
  SELECT id, seq, h, after, lag(after, 1, '') OVER lives AS before,
         asked + sum(later) OVER lives * interval '1 second' AS at
    FROM state WINDOW lives AS (PARTITION BY id ORDER BY seq)
)
INSERT INTO broker_transition
       (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id, quantity,
        price_class, generation, actor_kind, actor_id, actor_label)
SELECT id, seq, %(tenant)s, at, CASE WHEN seq > 0 THEN seq - 1 END, lag(at) OVER (PARTITION BY id ORDER BY seq),
       before, after, CASE WHEN after = 'stopped' AND h %% 7 = 0 THEN 'preempted' ELSE 'none' END, '',
       (%(offerings)s::text[])[1 + h / 100 %% %(kinds)s], (%(projects)s::text[])[1 + (hashtext(id) & 1)], 1 + h / 1000 %% 4,
       'on_demand', 1, 'system', '', ''
  FROM row
