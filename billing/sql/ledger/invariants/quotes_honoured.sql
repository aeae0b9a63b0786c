SELECT c.lease_id || '#' || c.seq FROM recent_lease l
  JOIN billing_quote q ON q.lease_id = l.id
  JOIN billing_ratedcharge c ON c.lease_id = l.id AND c.offering_id = q.offering_id AND c.correction_id = ''
 WHERE c.price_version_id <> q.price_version_id OR c.exact_num <> c.unit_seconds * q.nano_per_hour::numeric
