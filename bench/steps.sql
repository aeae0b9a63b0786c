-- One tenant's ledger as whoever hands it in has it: %(leases)s leases of fifteen steps each, into a table without keys.
INSERT INTO bench_steps
       (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id, quantity,
        price_class, generation, actor_kind, actor_id, actor_label)
SELECT %(tenant)s || '_' || n, seq, %(tenant)s, at, CASE WHEN seq > 0 THEN seq - 1 END,
       CASE WHEN seq > 0 THEN %(since)s::timestamptz + (seq - 1) * interval '7 hours' END, before, after, 'none', '',
       %(offering)s, %(project)s, 1, 'on_demand', 1, 'system', '', ''
  FROM generate_series(1, %(leases)s) n
 CROSS JOIN LATERAL (
   SELECT seq, %(since)s::timestamptz + seq * interval '7 hours' AS at,
          CASE WHEN seq = 0 THEN '' WHEN seq = 1 THEN 'requested' ELSE 'active' END AS before,
          CASE seq WHEN 0 THEN 'requested' WHEN 14 THEN 'released' ELSE 'active' END AS after
     FROM generate_series(0, 14) seq) step
