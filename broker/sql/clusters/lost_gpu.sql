-- The first of some GPUs that is lost, or whose node is.
SELECT node.id, node.state, node.name, node.state_since, gpu.gpu_model_id, gpu.index, gpu.health_reason, gpu.lost_since
  FROM broker_gpu gpu
  JOIN broker_node node ON node.id = gpu.node_id
 WHERE gpu.id = ANY(%(gpus)s) AND (gpu.lost_since IS NOT NULL OR node.state = %(lost)s)
 ORDER BY gpu.id
 LIMIT 1
