SELECT t.lease_id FROM recent_lease l JOIN broker_transition t ON t.lease_id = l.id
  LEFT JOIN broker_transition p ON p.lease_id = t.lease_id AND p.seq = t.seq - 1
 WHERE t.seq > 0 AND (p.after IS DISTINCT FROM t.before OR p.at IS DISTINCT FROM t.prev_at)
 UNION
SELECT l.id FROM recent_lease l LEFT JOIN broker_transition t ON t.lease_id = l.id AND t.seq = l.seq
 WHERE t.after IS DISTINCT FROM l.state
    OR EXISTS (SELECT FROM broker_transition x WHERE x.lease_id = l.id AND x.seq = l.seq + 1)
