-- Blocks of CPUs are no GPUs, but their leases and tenants count.
SELECT (SELECT count(*) FROM broker_cluster), (SELECT count(*) FROM broker_gpu WHERE gpu_model_id <> %(cpu)s), count(DISTINCT l.id),
       count(DISTINCT l.tenant_id),
       coalesce(sum((upper(a.placement) - lower(a.placement)) * %(scale)s / m.memory_grid)
                FILTER (WHERE g.gpu_model_id <> %(cpu)s), 0)::bigint
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id JOIN broker_gpu g ON g.id = a.gpu_id
  JOIN broker_gpumodel m ON m.name = g.gpu_model_id
 WHERE a.released_at IS NULL AND a.leaving_since IS NULL AND l.state = 'active'
