-- Hours of one node's slots from their minutes; means are weighted by how much of each minute is known.
INSERT INTO broker_gpuhour AS stored (
  slot_id, at, energy_mj, throttle_reasons, memory_used_mib, memory_max_mib, power_dw, samples, throttled_samples,
  engine_active, engine_max, sm_active, tensor_active, dram_active, temperature_c
)
SELECT m.slot_id,
       %(since)s,
       sum(m.energy_mj)::bigint,
       bit_or(m.throttle_reasons),
       weighted_mean(m.memory_used_mib, m.samples)::integer,
       max(m.memory_max_mib),
       weighted_mean(m.power_dw, m.samples)::integer,
       sum(m.samples)::smallint,
       sum(m.throttled_samples)::smallint,
       weighted_mean(m.engine_active, m.samples)::smallint,
       max(m.engine_max),
       weighted_mean(m.sm_active, m.samples)::smallint,
       weighted_mean(m.tensor_active, m.samples)::smallint,
       weighted_mean(m.dram_active, m.samples)::smallint,
       weighted_mean(m.temperature_c, m.samples)::smallint
  FROM broker_gpuminute m
 WHERE m.slot_id = ANY(%(slots)s)
   AND m.at >= %(since)s
   AND m.at < %(until)s
 GROUP BY m.slot_id
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
