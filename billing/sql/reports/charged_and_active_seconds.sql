-- Compare the charged seconds of each lease with its active seconds, and count the seconds that a lease was active
-- without an allocation: all differences must be zero. An allocation whose lease went on without it does not count
-- from then on.
WITH active AS (
  SELECT begun.lease_id, sum(extract(epoch FROM ended.at - begun.at)::bigint * begun.quantity) AS seconds
    FROM broker_transition begun
    JOIN broker_transition ended ON ended.lease_id = begun.lease_id AND ended.prev_seq = begun.seq
   WHERE begun.after = 'active'
   GROUP BY begun.lease_id
), charged AS (
  SELECT lease_id, sum(unit_seconds) AS seconds FROM billing_ratedcharge
   WHERE kind = 'usage' AND meter = 'slice_seconds' GROUP BY lease_id
), placed AS (
  SELECT begun.lease_id,
         sum(extract(epoch FROM least(ended.at, date_trunc('second', least(a.leaving_since, a.released_at)))
                              - greatest(begun.at, date_trunc('second', a.held_at)))::bigint) AS seconds
    FROM broker_transition begun
    JOIN broker_transition ended ON ended.lease_id = begun.lease_id AND ended.prev_seq = begun.seq
    JOIN broker_allocation a
      ON a.lease_id = begun.lease_id AND date_trunc('second', a.held_at) < ended.at
     AND coalesce(date_trunc('second', least(a.leaving_since, a.released_at)) > begun.at, true)
   WHERE begun.after = 'active'
   GROUP BY begun.lease_id
)
SELECT coalesce(sum(abs(coalesce(charged.seconds, 0) - coalesce(active.seconds, 0))), 0)::bigint,
       coalesce(sum(abs(coalesce(active.seconds, 0) - coalesce(placed.seconds, 0))), 0)::bigint,
       coalesce(sum(active.seconds), 0)::bigint
  FROM active
  FULL JOIN charged USING (lease_id)
  FULL JOIN placed USING (lease_id)
