SELECT lease_id, seq, at, before, after, reason, quantity, offering_id, generation
  FROM broker_transition ORDER BY lease_id, seq
