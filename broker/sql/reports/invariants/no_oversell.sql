SELECT a.gpu_id || ' ' || a.placement FROM broker_allocation a JOIN broker_allocation b
    ON b.gpu_id = a.gpu_id AND b.id > a.id AND b.placement && a.placement
 WHERE a.released_at IS NULL AND b.released_at IS NULL
