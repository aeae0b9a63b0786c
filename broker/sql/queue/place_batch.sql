-- GPUs locked by another placer are skipped, and so are slots it has just taken.
WITH wanted AS (
  SELECT * FROM unnest(%(id)s::text[], %(seq)s::int[], %(at)s::timestamptz[], %(lasts)s::int[], %(gpu)s::text[],
                       %(start)s::int[], %(size)s::int[], %(place)s::text[], %(cause)s::text[])
             AS w (id, seq, at, lasts, gpu_id, start, size, place, cause)
), free AS (
  SELECT g.id, c.allow_shared_gpus
    FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
   WHERE g.id IN (SELECT gpu_id FROM wanted) AND g.health = 'healthy' AND n.state = 'ready'
     AND g.out_of_service_since IS NULL
     AND c.unreachable_since IS NULL AND c.frozen = ''
   ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED
), moved AS (
  UPDATE broker_lease l SET version = l.version + 1, state = 'provisioning', seq = l.seq + 1,
         state_since = greatest(l.state_since, %(now_at)s), generation = l.generation + 1, claimed_until = NULL,
         due_at = %(due)s, unfinished_claims = 0, pending_reason = '', progress = '{}'
    FROM wanted w JOIN free f ON f.id = w.gpu_id
   WHERE l.id = w.id AND l.state = 'queued' AND l.seq = w.seq AND l.max_duration_s = w.lasts
     AND NOT EXISTS (SELECT FROM broker_occupied o WHERE o.gpu_id = w.gpu_id
                        AND o.start < w.start + w.size AND o.start + o.size > w.start)
     AND NOT EXISTS (SELECT FROM broker_promisedslot p WHERE p.gpu_id = w.gpu_id
                        AND p.placement && int4range(w.start, w.start + w.size))
  RETURNING l.*, w.at AS prev_at, w.gpu_id, w.start, w.size, w.place, w.cause, f.allow_shared_gpus
), held AS (
  INSERT INTO broker_allocation (id, tenant_id, lease_id, generation, gpu_id, placement, profile, isolation, may_share,
         held_at)
  SELECT m.place, m.tenant_id, m.id, m.generation, m.gpu_id, int4range(m.start, m.start + m.size), o.profile,
         o.isolation, m.allow_shared_gpus, %(now)s
    FROM moved m JOIN broker_offering o ON o.id = m.offering_id
)
INSERT INTO broker_transition (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause,
       offering_id, project_id, quantity, price_class, generation, actor_kind, actor_id, actor_label)
SELECT m.id, m.seq, m.tenant_id, m.state_since, m.seq - 1, m.prev_at, 'queued', 'provisioning', 'none', left(m.cause, 200),
       m.offering_id, m.project_id, m.quantity, o.price_class, m.generation, %(kind)s, %(actor)s, %(label)s
  FROM moved m JOIN broker_offering o ON o.id = m.offering_id
RETURNING lease_id
