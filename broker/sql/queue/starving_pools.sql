-- The pools in which anything may be reserved: in most, no lease waits that long.
SELECT o.gpu_model_id, o.region FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
 WHERE w.created_at < %s
 UNION
SELECT p.gpu_model_id, c.region FROM broker_relocationplan p JOIN broker_cluster c ON c.id = p.cluster_id
 WHERE p.state = 'running'
