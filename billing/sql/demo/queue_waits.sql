-- A lease waits from its first queued transition to its first placement. Percentiles are by rank, without interpolation,
-- over every placed lease.
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), waits AS (
  SELECT extract(epoch FROM placed - queued)::bigint AS s FROM steps WHERE placed IS NOT NULL
)
SELECT (SELECT count(*) FROM broker_lease), count(*), count(*) FILTER (WHERE s > 0),
       coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY s), 0),
       coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY s) FILTER (WHERE s > 0), 0),
       coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY s) FILTER (WHERE s > 0), 0), coalesce(max(s), 0)
  FROM waits
