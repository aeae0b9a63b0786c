-- Since when the cluster that a lease is in does not respond; at every end and stop of a lease.
SELECT cluster.unreachable_since
  FROM broker_allocation held
  JOIN broker_gpu gpu ON gpu.id = held.gpu_id
  JOIN broker_node node ON node.id = gpu.node_id
  JOIN broker_cluster cluster ON cluster.id = node.cluster_id
 WHERE held.lease_id = %(lease)s AND held.released_at IS NULL AND held.leaving_since IS NULL
 LIMIT 1
