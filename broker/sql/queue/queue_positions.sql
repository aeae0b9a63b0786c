-- Counted over every tenant's queue, through a view that does not reveal the tenants.
SELECT lease_id, position, waiting FROM (
  SELECT w.lease_id, w.mine,
         row_number() OVER (PARTITION BY o.gpu_model_id, o.region ORDER BY w.created_at, w.lease_id) AS position,
         count(*) OVER (PARTITION BY o.gpu_model_id, o.region) AS waiting
    FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id) queue
 WHERE mine AND lease_id = ANY(%s)
