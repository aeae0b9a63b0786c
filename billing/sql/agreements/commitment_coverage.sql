-- Count the active units of an offering in every second between two moments, and how many units of a commitment
-- remain: a running sum of starts and ends, cut at given boundaries. Commitments that are used before it cover theirs. An active lease counts until the last boundary.
-- Excludes use that was refunded, or was charged after its month had closed.
WITH stretch AS (
  SELECT greatest(begun.at, (%(boundaries)s::timestamptz[])[1]) AS s,
         least(coalesce(ended.at, l.ends_at, 'infinity'), %(until)s) AS e, begun.quantity
    FROM broker_lease l
    JOIN broker_transition begun
      ON begun.lease_id = l.id AND begun.after = 'active' AND begun.offering_id = %(offering)s AND begun.at < %(until)s
    LEFT JOIN broker_transition ended ON ended.lease_id = l.id AND ended.prev_seq = begun.seq
   WHERE l.tenant_id = %(tenant)s AND l.created_at < %(until)s
     AND NOT EXISTS (SELECT FROM billing_ratedcharge c
                      WHERE c.lease_id = l.id AND c.seq = begun.seq AND c.period_id = %(period)s
                        AND (c.billed_period_id <> c.period_id OR (c.kind = 'adjust' AND c.correction_id = '')))
), other AS (  -- commitments, and whether they are used before this one
  SELECT o.units, greatest(lower(o.valid), (%(boundaries)s::timestamptz[])[1]) AS s,
         least(coalesce(upper(o.valid), 'infinity'), %(until)s) AS e,
         (lower(o.valid), o.id COLLATE "C") < (lower(c.valid), c.id COLLATE "C") AS before
    FROM billing_commitment c
    JOIN billing_commitment o ON o.tenant_id = c.tenant_id AND o.offering_id = c.offering_id AND o.id <> c.id
   WHERE c.id = %(commitment)s
), edge AS (
  SELECT s AS at, quantity AS change, 0 AS before, 0 AS others FROM stretch WHERE e > s
   UNION ALL
  SELECT e, -quantity, 0, 0 FROM stretch WHERE e > s
   UNION ALL
  SELECT s, 0, CASE WHEN before THEN units ELSE 0 END, units FROM other WHERE e > s
   UNION ALL
  SELECT e, 0, CASE WHEN before THEN -units ELSE 0 END, -units FROM other WHERE e > s
   UNION ALL
  SELECT boundary, 0, 0, 0 FROM unnest(%(boundaries)s::timestamptz[]) AS boundary
), step AS (
  SELECT at, sum(sum(change)) OVER (ORDER BY at) AS active,
         greatest(sum(sum(change)) OVER (ORDER BY at) - sum(sum(before)) OVER (ORDER BY at), 0) AS left_over,
         sum(sum(others)) OVER (ORDER BY at) AS others,
         extract(epoch FROM lead(at) OVER (ORDER BY at) - at)::bigint AS seconds
    FROM edge
   GROUP BY at
)
SELECT width_bucket(at, %(boundaries)s::timestamptz[]) AS part, sum(least(left_over, %(units)s) * seconds)::bigint,
       sum(greatest(active - others - %(units)s, 0) * seconds)::bigint,
       sum(greatest(%(units)s - left_over, 0) * seconds)::bigint
  FROM step
 WHERE seconds IS NOT NULL
 GROUP BY 1
 ORDER BY 1
