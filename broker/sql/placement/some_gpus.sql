-- The same as all_gpus.sql for some GPUs, whose slices are looked up one by one.
SELECT g.id, n.id, n.name, c.id, c.name, g.index, c.allow_shared_gpus, g.gpu_model_id, c.region,
       g.health = 'healthy' AND n.state = 'ready' AND n.unschedulable_reason = '' AND n.refused_until IS NULL
         AND n.resource_shortage = '' AND g.out_of_service_since IS NULL AND g.foreign_holder = ''
         AND c.unreachable_since IS NULL AND c.frozen = '',
       c.auto_repartition AND g.fixed_layout -> 0 ->> 'resource_name' IS NULL
         AND NOT g.fixed_layout @> '[{"in_use": true}]', g.layout_policy, g.fixed_layout::text,
       coalesce(nullif(g.driver, ''), c.driver), g.fabric, g.numa, g.published::text,
       (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY start)
          FROM broker_occupied WHERE gpu_id = g.id),
       CASE WHEN g.layout_policy = 'dynamic' AND g.driver = '' AND c.driver = '' THEN
         (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY released_at DESC, held_at DESC)
            FROM (SELECT * FROM broker_vacated v
                   WHERE v.gpu_id = g.id AND v.released_at >= greatest(n.state_since, g.health_since)
                   ORDER BY v.released_at DESC, v.held_at DESC LIMIT 32) last) END,
       (SELECT string_agg(lease || '/' || isolation || ':' || profile || '@' || lower(placement), ' ' ORDER BY placement)
          FROM broker_promisedslot WHERE gpu_id = g.id)
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE g.id = ANY(%(gpus)s)
 ORDER BY c.name, n.name, g.index
