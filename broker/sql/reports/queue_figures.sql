-- percentile_disc: an actual wait, not an interpolated one.
SELECT count(*), min(since), percentile_disc(0.05) WITHIN GROUP (ORDER BY since)
  FROM (SELECT coalesce(requeued_at, created_at) AS since FROM broker_lease WHERE state = 'queued') queued
 WHERE since <= %(now)s
