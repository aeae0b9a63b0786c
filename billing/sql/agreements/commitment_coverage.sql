-- Count the active units of an offering in every second between two moments, and how many units of a commitment
-- remain: a running sum of starts and ends, cut at given boundaries. An active lease counts until the last boundary.
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
), edge AS (
  SELECT s AS at, quantity AS change FROM stretch WHERE e > s
   UNION ALL
  SELECT e, -quantity FROM stretch WHERE e > s
   UNION ALL
  SELECT boundary, 0 FROM unnest(%(boundaries)s::timestamptz[]) AS boundary
), step AS (
  SELECT at, sum(sum(change)) OVER (ORDER BY at) AS active,
         extract(epoch FROM lead(at) OVER (ORDER BY at) - at)::bigint AS seconds
    FROM edge
   GROUP BY at
)
SELECT width_bucket(at, %(boundaries)s::timestamptz[]) AS part, sum(least(active, %(units)s) * seconds)::bigint,
       sum(greatest(active - %(units)s, 0) * seconds)::bigint, sum(greatest(%(units)s - active, 0) * seconds)::bigint
  FROM step
 WHERE seconds IS NOT NULL
 GROUP BY 1
 ORDER BY 1
