SELECT a.lease_id || '#' || a.seq FROM recent_lease l
  JOIN billing_ratedcharge a ON a.lease_id = l.id AND a.kind = 'adjust' AND a.correction_id = ''
  LEFT JOIN billing_ratedcharge c
    ON (c.lease_id, c.seq, c.price_version_id, c.period_id, c.meter, c.part)
     = (a.lease_id, a.seq, a.price_version_id, a.period_id, a.meter, a.part) AND c.kind = 'usage'
 WHERE (c.s, c.e, c.unit_seconds, c.exact_num) IS DISTINCT FROM (a.s, a.e, -a.unit_seconds, -a.exact_num)
