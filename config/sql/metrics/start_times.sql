-- Compute how long leases requested lately took until they were active the first time: median and 95th percentile. Leases
-- with a scheduled start are left out. Ids begin with the time, so that only the latest leases are read.
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY took)::float, percentile_disc(0.95) WITHIN GROUP (ORDER BY took)::float
  FROM (SELECT greatest(extract(epoch FROM min(t.at) - l.created_at), 0) AS took
          FROM broker_lease l
          JOIN broker_transition t ON t.lease_id = l.id AND t.after = 'active'
         WHERE l.id >= %(first)s AND l.starts_at IS NULL
         GROUP BY l.id) started
