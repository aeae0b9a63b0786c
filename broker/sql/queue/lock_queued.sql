-- Leases locked by another placer are left to it.
SELECT l.id, l.seq, l.state_since, l.max_duration_s, o.profile, o.isolation
  FROM broker_lease l JOIN broker_offering o ON o.id = l.offering_id
 WHERE l.id = ANY(%s) AND l.state = 'queued'
 ORDER BY array_position(%s, l.id::text) FOR NO KEY UPDATE OF l SKIP LOCKED
