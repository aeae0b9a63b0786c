-- Points of a lease's chart: what its slices did while it held them, and what the whole GPUs did.
-- The table after JOIN is chosen by the step between points.
WITH held AS (
  SELECT a.gpu_id, a.placement, greatest(a.held_at, %(since)s) AS since,
         least(coalesce(a.released_at, 'infinity'), %(until)s) AS until
    FROM broker_allocation a
   WHERE a.lease_id = %(lease)s
     AND a.held_at < %(until)s
     AND coalesce(a.released_at, 'infinity') > %(since)s
)
SELECT date_bin(make_interval(secs => %(step)s), m.at, '2000-01-01 00:00+00') AS point,
       s.placement = h.placement AS own,
       count(DISTINCT s.id) AS slots,
       round(avg(m.engine_active)),
       max(m.engine_active),
       round(avg(m.sm_active)),
       round(avg(m.tensor_active)),
       round(avg(m.dram_active)),
       round(avg(m.memory_used_mib)),
       round(avg(m.power_dw)),
       max(m.temperature_c),
       bit_or(m.throttle_reasons),
       sum(m.energy_mj)
  FROM held h
  JOIN broker_gpuslot s ON s.gpu_id = h.gpu_id
   AND (s.placement = h.placement OR s.placement = int4range(0, %(grid)s))
  JOIN {table} m ON m.slot_id = s.id AND m.at >= h.since AND m.at < h.until
 GROUP BY point, own
 ORDER BY point, own
