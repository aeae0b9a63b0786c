-- Ended placements show which slices a GPU still has. Only those since its node and the GPU last changed state
-- count, as either may have restarted, and only the latest 32, so that a long history costs nothing.
SELECT g.id, n.id, n.name, c.id, c.name, g.index, c.allow_shared_gpus, g.gpu_model_id, c.region,
       g.health = 'healthy' AND n.state = 'ready' AND n.unschedulable_reason = '' AND n.refused_until IS NULL
         AND n.resource_shortage = '' AND g.out_of_service_since IS NULL AND g.foreign_holder = ''
         AND c.unreachable_since IS NULL AND c.frozen = '',
       c.auto_repartition AND g.fixed_layout -> 0 ->> 'resource_name' IS NULL
         AND NOT g.fixed_layout @> '[{"in_use": true}]', g.layout_policy, g.fixed_layout::text,
       coalesce(nullif(g.driver, ''), c.driver), g.fabric, g.numa, g.published::text,
       held.slices,
       CASE WHEN g.layout_policy = 'dynamic' AND g.driver = '' AND c.driver = '' THEN
         (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY released_at DESC, held_at DESC)
            FROM (SELECT * FROM broker_vacated v
                   WHERE v.gpu_id = g.id AND v.released_at >= greatest(n.state_since, g.health_since)
                   ORDER BY v.released_at DESC, v.held_at DESC LIMIT 32) last) END,
       promised.slots
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
  LEFT JOIN (SELECT gpu_id, string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY start) AS slices
               FROM broker_occupied GROUP BY gpu_id) held ON held.gpu_id = g.id
  LEFT JOIN (SELECT gpu_id, string_agg(lease || '/' || isolation || ':' || profile || '@' || lower(placement), ' '
                                       ORDER BY placement) AS slots
               FROM broker_promisedslot GROUP BY gpu_id) promised ON promised.gpu_id = g.id
 ORDER BY c.name, n.name, g.index
