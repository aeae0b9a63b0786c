-- Duration of the latest starts on these GPUs: a relocation costs that much downtime.
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) FROM (
  SELECT extract(epoch FROM ready.at - ready.prev_at)::int AS seconds
    FROM broker_transition ready JOIN broker_offering o ON o.id = ready.offering_id
   WHERE ready.before = 'provisioning' AND ready.after = 'active' AND o.gpu_model_id = %s AND o.region = %s
     -- not the return after an outage of its node
     AND NOT EXISTS (SELECT FROM broker_transition placed WHERE placed.lease_id = ready.lease_id
                        AND placed.seq = ready.prev_seq AND placed.before = 'active')
   ORDER BY ready.xid DESC, ready.position DESC LIMIT %s) latest
