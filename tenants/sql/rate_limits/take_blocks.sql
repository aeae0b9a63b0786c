-- Add blocks of requests to the counts of their windows, which begin at zero. Sorted, so that no two wait for each other.
INSERT INTO request_count AS c (policy, key, period, used, counted_at)
SELECT taken.*, %s::timestamptz
  FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) AS taken ORDER BY 1, 2
    ON CONFLICT (policy, key) DO UPDATE
   SET used = CASE WHEN c.period < excluded.period THEN excluded.used ELSE c.used + excluded.used END,
       period = greatest(c.period, excluded.period), counted_at = excluded.counted_at
RETURNING policy, key, used
