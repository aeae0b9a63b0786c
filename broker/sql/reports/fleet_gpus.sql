SELECT g.id, g.index, g.gpu_model_id, g.health, g.health_reason, extract(epoch FROM g.health_since)::float8,
       CASE WHEN g.layout_policy = 'fixed' THEN g.fixed_layout END, g.published,
       n.id, n.name, n.state, extract(epoch FROM n.state_since)::float8,
       c.id, c.name, c.region, floor(extract(epoch FROM c.created_at))::bigint, c.allow_shared_gpus,
       CASE WHEN g.out_of_service_since IS NULL THEN '' ELSE
         (SELECT l.step FROM broker_repartition l WHERE l.node_id = n.id ORDER BY l.planned_at DESC LIMIT 1) END,
       n.unschedulable_reason <> '' OR n.refused_until IS NOT NULL OR n.resource_shortage <> '' OR g.foreign_holder <> ''
         OR g.layout_policy = 'fixed' AND g.fixed_layout @> '[{"in_use": true}]'
            AND NOT EXISTS (SELECT FROM jsonb_array_elements(g.fixed_layout) cut WHERE NOT cut ? 'in_use')
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE (%(node)s = '' OR g.node_id = %(node)s)
   AND (%(gpu)s = '' OR %(gpu)s IN (g.id, g.node_id || '.' || g.index))
 ORDER BY c.name, n.name, g.index
