-- The pods of a lease's placement as its cluster's agent stored them: body and when it was seen.
SELECT object.body, object.seen_at
  FROM broker_clusterobject object
 WHERE object.cluster_id = (
         SELECT node.cluster_id
           FROM broker_allocation held
           JOIN broker_gpu gpu ON gpu.id = held.gpu_id
           JOIN broker_node node ON node.id = gpu.node_id
          WHERE held.lease_id = %(lease)s AND held.generation = %(generation)s
          LIMIT 1)
   AND object.spec_name = %(spec_name)s AND object.kind = %(kind)s
