-- A pool's queue, oldest first; without the leases that start after %(now)s, if that is given.
SELECT lease.id, lease.tenant_id, lease.offering_id, lease.quantity, lease.same_node, lease.topology,
       COALESCE(lease.requeued_at, lease.created_at) AS since, lease.pending_reason, lease.volume_id,
       lease.generation, offering.isolation, offering.price_class
  FROM broker_lease lease
  JOIN broker_offering offering ON offering.id = lease.offering_id
 WHERE lease.state = 'queued' AND offering.gpu_model_id = %(model)s AND offering.region = %(region)s
   AND (%(now)s::timestamptz IS NULL OR lease.requeued_at IS NULL OR lease.requeued_at <= %(now)s)
 ORDER BY since, lease.id
 LIMIT %(limit)s
