-- Read at every check of a lease: a prepared statement, because five joins take longer to plan than to run.
SELECT a.gpu_id, a.profile, lower(a.placement), upper(a.placement), g.uuid, m.memory_grid, m.memory_gb,
       COALESCE(its.cut ->> 'resource_name', ''), n.id, n.name,
       LEAST(g.lost_since, (its.cut ->> 'lost_since')::timestamptz),
       CASE WHEN g.lost_since IS NULL THEN COALESCE(its.cut ->> 'fault', g.health_reason) ELSE g.health_reason END,
       g.health_since, c.id, c.domain, c.ingress, c.tolerations, c.frozen, c.provisioner, g.layout_policy,
       coalesce(nullif(g.driver, ''), c.driver)
  FROM broker_allocation a
  JOIN broker_gpu g ON g.id = a.gpu_id
  JOIN broker_gpumodel m ON m.name = g.gpu_model_id
  JOIN broker_node n ON n.id = g.node_id
  JOIN broker_cluster c ON c.id = n.cluster_id
  LEFT JOIN LATERAL (SELECT cut FROM jsonb_array_elements(g.fixed_layout) cut
                      WHERE (cut ->> 'start')::integer = lower(a.placement) AND cut ->> 'profile' = a.profile
                      LIMIT 1) its ON true
 WHERE a.lease_id = %s AND a.generation = %s::integer AND a.released_at IS NULL
 ORDER BY a.gpu_id, a.placement
