SELECT a.lease_id, g.uuid, a.placement, a.held_at, a.released_at
  FROM broker_allocation a JOIN broker_gpu g ON g.id = a.gpu_id ORDER BY 1, 2, 3, 4
