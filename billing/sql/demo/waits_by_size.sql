-- Results by size: a slice, one whole GPU, several together.
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), waits AS (
  SELECT CASE WHEN l.quantity > 1 THEN 'gangs' WHEN o.isolation = 'device' THEN 'gpus' ELSE 'slices' END AS size,
         extract(epoch FROM placed - queued)::bigint AS s
    FROM steps JOIN broker_lease l ON l.id = lease_id JOIN broker_offering o ON o.id = l.offering_id
)
SELECT size, count(*), count(*) FILTER (WHERE s = 0), coalesce(sum(s), 0)::bigint FROM waits GROUP BY size
