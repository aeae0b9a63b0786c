SELECT c.lease_id || '#' || c.seq FROM recent_lease l
  JOIN billing_quote q ON q.lease_id = l.id
  JOIN billing_ratedcharge c ON c.lease_id = l.id AND c.offering_id = q.offering_id AND c.correction_id = ''
  LEFT JOIN billing_priceversion v ON v.id = c.price_version_id AND v.offering_id = c.offering_id
 WHERE v.id IS NULL OR c.exact_num <> c.unit_seconds * v.nano_per_hour::numeric
    OR CASE WHEN q.is_ceiling THEN v.nano_per_hour > q.nano_per_hour ELSE v.id <> q.price_version_id END
