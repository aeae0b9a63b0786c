SELECT EXISTS (
  SELECT FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
   WHERE o.gpu_model_id = %(model)s AND o.region = %(region)s
     AND (w.created_at, w.lease_id) < (%(since)s, %(lease)s))
