-- Use of the fleet while requests waited, and until the last request; constant between two changes.
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), changes AS (
  SELECT held_at AS at, upper(placement) - lower(placement) AS units, 0 AS waiting FROM broker_allocation
  UNION ALL
  SELECT released_at, lower(placement) - upper(placement), 0 FROM broker_allocation WHERE released_at IS NOT NULL
  UNION ALL SELECT queued, 0, 1 FROM steps WHERE placed > queued
  UNION ALL SELECT placed, 0, -1 FROM steps WHERE placed > queued
), line AS (
  SELECT at, sum(sum(units)) OVER (ORDER BY at) AS units, sum(sum(waiting)) OVER (ORDER BY at) AS waiting,
         extract(epoch FROM lead(at) OVER (ORDER BY at) - at)::bigint AS s
    FROM changes GROUP BY at
)
SELECT coalesce(sum(units * s) FILTER (WHERE waiting > 0), 0)::bigint,
       coalesce(sum(s) FILTER (WHERE waiting > 0), 0)::bigint,
       coalesce(sum(units * s) FILTER (WHERE at < last), 0)::bigint,
       coalesce(extract(epoch FROM max(last) - %(first)s::timestamptz), 0)::bigint
  FROM line, (SELECT max(created_at) AS last FROM broker_lease) newest
