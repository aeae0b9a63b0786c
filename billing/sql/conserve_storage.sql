-- The GiB-seconds that volumes were charged for against those that they lived since storage is sold, volume by volume.
-- What lies after a volume's last cut is not charged yet, and not counted. It must be nought.
WITH lived AS (
  SELECT volume_id, sum(extract(epoch FROM at - greatest(prev_at, %(sold_since)s))::bigint * prev_gib) AS seconds
    FROM broker_volumestep
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
