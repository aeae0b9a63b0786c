-- Slices of a pool that spot leases past their minimum runtime hold, and those that are being freed already: their
-- lease is ending, has notice, or left them. One that has been ending for long may be stuck, and is not counted on.
SELECT * FROM (
  SELECT a.gpu_id, a.profile, a.isolation, lower(a.placement) AS start, l.id, l.tenant_id,
         l.quantity * o.milli_units AS weight, l.active_at, l.spot_notice_s,
         NOT a.is_relocation AND (
           l.state IN ('releasing', 'stopping') AND l.state_since > %(stuck)s
           OR a.leaving_since > %(stuck)s
           OR l.state = 'active' AND l.reclaim_at > %(stuck)s) AS is_freed,
         o.price_class = 'spot' AND l.state = 'active' AND l.reclaim_at IS NULL AND l.conditions = '{}'
           AND a.generation = l.generation AND NOT a.is_relocation AND a.leaving_since IS NULL
           AND l.active_at + make_interval(secs => l.spot_min_runtime_s) <= %(now)s AS is_reclaimable
    FROM broker_allocation a
    JOIN broker_lease l ON l.id = a.lease_id
    JOIN broker_offering o ON o.id = l.offering_id
   WHERE a.released_at IS NULL AND o.gpu_model_id = %(model)s AND o.region = %(region)s
     AND l.state <> 'released') held
 WHERE is_freed OR is_reclaimable
 ORDER BY id, gpu_id, start
