-- Sum what leases held of each GPU model, in memory slices × seconds: sold while the lease was active, otherwise
-- reserved: being provisioned, stopped, released, or left behind by a lease that was relocated. It reads only
-- allocations and transitions.
WITH held AS (
  SELECT g.gpu_model_id AS model, a.lease_id, upper(a.placement) - lower(a.placement) AS size,
         greatest(date_trunc('second', a.held_at), %(first)s) AS s,
         least(date_trunc('second', a.released_at), %(last)s) AS e,
         date_trunc('second', a.leaving_since) AS leaves
    FROM broker_allocation a
    JOIN broker_gpu g ON g.id = a.gpu_id
   WHERE a.held_at < %(last)s AND (a.released_at IS NULL OR a.released_at > %(first)s)
), active AS (
  SELECT begun.lease_id, begun.at AS s, coalesce(ended.at, %(last)s) AS e
    FROM broker_transition begun
    LEFT JOIN broker_transition ended ON ended.lease_id = begun.lease_id AND ended.prev_seq = begun.seq
   WHERE begun.after = 'active' AND begun.at < %(last)s AND coalesce(ended.at, %(last)s) > %(first)s
), sold AS (
  SELECT held.model,
         sum(held.size * extract(epoch FROM least(held.e, held.leaves, active.e) - greatest(held.s, active.s))::bigint) AS slices
    FROM held
    JOIN active ON active.lease_id = held.lease_id AND active.s < least(held.e, held.leaves) AND active.e > held.s
   GROUP BY held.model
)
SELECT held.model, coalesce(max(sold.slices), 0)::bigint,
       (sum(held.size * extract(epoch FROM held.e - held.s)::bigint) - coalesce(max(sold.slices), 0))::bigint
  FROM held
  LEFT JOIN sold USING (model)
 WHERE held.e > held.s
 GROUP BY held.model
