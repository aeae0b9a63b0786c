-- Whether a lease that is not about to leave holds units of a promised slot.
SELECT EXISTS (
  SELECT FROM broker_promisedslot p
    JOIN broker_allocation a ON a.gpu_id = p.gpu_id AND a.released_at IS NULL AND a.placement && p.placement
    JOIN broker_lease l ON l.id = a.lease_id
   WHERE p.reclaim_id = %(reclaim)s AND a.leaving_since IS NULL
     AND l.state NOT IN ('releasing', 'released', 'stopping', 'failed') AND l.reclaim_at IS NULL)
