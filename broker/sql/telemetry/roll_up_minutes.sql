-- Minutes of one node's slots within a range, from their samples. A minute that gets late samples is written again.
INSERT INTO broker_gpuminute AS stored (
  slot_id, at, energy_mj, throttle_reasons, memory_used_mib, memory_max_mib, power_dw, samples, throttled_samples,
  engine_active, engine_max, sm_active, tensor_active, dram_active, temperature_c
)
SELECT s.slot_id,
       date_bin('1 minute', s.at, '2000-01-01 00:00+00'),
       sum(s.energy_mj)::bigint,
       bit_or(s.throttle_reasons),
       avg(s.memory_used_mib)::integer,
       max(s.memory_used_mib),
       avg(s.power_dw)::integer,
       count(*)::smallint,
       count(*) FILTER (WHERE s.throttle_reasons & %(provider_reasons)s <> 0)::smallint,
       avg(s.engine_active)::smallint,
       max(s.engine_active),
       avg(s.sm_active)::smallint,
       avg(s.tensor_active)::smallint,
       avg(s.dram_active)::smallint,
       avg(s.temperature_c)::smallint
  FROM broker_gpusample s
 WHERE s.slot_id = ANY(%(slots)s)
   AND s.at >= %(since)s
   AND s.at < %(until)s
 GROUP BY 1, 2
ON CONFLICT (slot_id, at) DO UPDATE SET
  energy_mj = EXCLUDED.energy_mj,
  throttle_reasons = EXCLUDED.throttle_reasons,
  memory_used_mib = EXCLUDED.memory_used_mib,
  memory_max_mib = EXCLUDED.memory_max_mib,
  power_dw = EXCLUDED.power_dw,
  samples = EXCLUDED.samples,
  throttled_samples = EXCLUDED.throttled_samples,
  engine_active = EXCLUDED.engine_active,
  engine_max = EXCLUDED.engine_max,
  sm_active = EXCLUDED.sm_active,
  tensor_active = EXCLUDED.tensor_active,
  dram_active = EXCLUDED.dram_active,
  temperature_c = EXCLUDED.temperature_c
