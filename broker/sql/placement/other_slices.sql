-- Slices on GPUs beside the lease's own placements: occupied ones, and ended ones as in all_gpus.sql.
SELECT g.id, g.gpu_model_id,
       (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ') FROM broker_occupied o
         WHERE o.gpu_id = g.id AND NOT EXISTS (
           SELECT FROM unnest(%(gpus)s::text[], %(starts)s::int[]) AS own (gpu_id, start)
            WHERE own.gpu_id = g.id AND own.start = o.start)),
       CASE WHEN g.layout_policy = 'dynamic' AND g.driver = '' AND c.driver = '' THEN
         (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY released_at DESC, held_at DESC)
            FROM (SELECT * FROM broker_vacated v
                   WHERE v.gpu_id = g.id AND v.released_at >= greatest(n.state_since, g.health_since)
                   ORDER BY v.released_at DESC, v.held_at DESC LIMIT 32) last) END
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE g.id = ANY(%(gpus)s)
