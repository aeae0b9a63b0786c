SELECT c.lease_id || '#' || c.seq FROM recent_lease l JOIN billing_ratedcharge c
    ON c.lease_id = l.id AND c.correction_id = ''
  LEFT JOIN broker_transition t ON t.lease_id = c.lease_id AND t.seq = c.seq
  LEFT JOIN broker_transition n ON n.lease_id = c.lease_id AND n.seq = c.seq + 1
 WHERE t.after IS DISTINCT FROM 'active' OR c.s < t.at OR c.e > n.at OR n.at IS NULL
