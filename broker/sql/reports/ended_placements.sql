-- Seconds are floored as in the ledger; flooring keeps order, so spans that did not overlap still do not. Sold time
-- is what the ledger calls active, the same seconds that are charged. Placements held now came with the GPUs: the
-- query returns only those released, or no longer active, since then.
WITH ended AS (
  SELECT begun.lease_id, begun.generation, extract(epoch FROM min(begun.at))::bigint AS since,
         extract(epoch FROM max(step.at))::bigint AS until
    FROM broker_transition step
    JOIN broker_transition begun ON begun.lease_id = step.lease_id AND begun.seq = step.prev_seq
   WHERE step.before = 'active' AND step.at > to_timestamp(%(since)s)
   GROUP BY 1, 2), changed AS (
  SELECT id FROM broker_allocation WHERE released_at > to_timestamp(%(since)s)
   UNION
  SELECT a.id FROM ended JOIN broker_allocation a USING (lease_id, generation) WHERE a.released_at IS NULL)
SELECT a.gpu_id, a.lease_id, a.isolation, lower(a.placement), upper(a.placement) - lower(a.placement), a.profile,
       o.price_class, extract(epoch FROM a.held_at)::float8,
       least(coalesce(floor(extract(epoch FROM a.released_at))::bigint, %(until)s), %(until)s),
       coalesce(ended.since, CASE WHEN runs.now THEN extract(epoch FROM l.state_since)::bigint END, %(until)s),
       CASE WHEN runs.now THEN %(until)s ELSE coalesce(ended.until, %(until)s) END
  FROM changed JOIN broker_allocation a USING (id)
  JOIN broker_lease l ON l.id = a.lease_id JOIN broker_offering o ON o.id = l.offering_id
  LEFT JOIN ended ON ended.lease_id = a.lease_id AND ended.generation = a.generation
 CROSS JOIN LATERAL (SELECT l.state = 'active' AND l.generation = a.generation AS now) runs
 WHERE a.held_at < to_timestamp(%(until)s)
