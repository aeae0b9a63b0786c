SELECT lease_id, seq, s, e, unit_seconds, exact_num FROM billing_ratedcharge ORDER BY lease_id, seq, s
