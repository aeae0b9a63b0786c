-- Compare the charged GiB-seconds of each volume with those that it existed since storage is sold: the difference must
-- be zero. Time after a volume's last step is not charged yet and does not count.
WITH lived AS (
  SELECT volume_id, sum(extract(epoch FROM at - greatest(prev_at, %(sold_since)s))::bigint * prev_gib) AS seconds
    FROM broker_volumesizechange
   WHERE seq > 0 AND at > greatest(prev_at, %(sold_since)s::timestamptz)
   GROUP BY volume_id
), charged AS (
  SELECT lease_id AS volume_id, sum(unit_seconds) AS seconds
    FROM billing_ratedcharge WHERE meter = 'gib_seconds' GROUP BY lease_id
)
SELECT coalesce(sum(abs(coalesce(charged.seconds, 0) - coalesce(lived.seconds, 0))), 0)::bigint,
       coalesce(sum(lived.seconds), 0)::bigint
  FROM lived
  FULL JOIN charged USING (volume_id)
