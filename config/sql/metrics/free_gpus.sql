-- List the models of GPUs in service, and how many of each hold no lease.
SELECT g.gpu_model_id, count(*) FILTER (WHERE NOT EXISTS (
         SELECT FROM broker_allocation a WHERE a.gpu_id = g.id AND a.released_at IS NULL))
  FROM broker_gpu g
  JOIN broker_node n ON n.id = g.node_id
 WHERE g.health = 'healthy' AND n.state = 'ready' AND g.out_of_service_since IS NULL AND g.lost_since IS NULL
   AND g.foreign_holder = '' AND g.gpu_model_id <> 'CPU'
 GROUP BY g.gpu_model_id
 ORDER BY g.gpu_model_id
