-- List tenants whose billable intervals have ended since their mark, how many, and from the first to the last of those
-- seconds.
SELECT t.id, found.stretches, found.first, found.last,
       EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = t.id AND p.span @> found.first)
         AND EXISTS (SELECT FROM billing_billingperiod p WHERE p.tenant_id = t.id AND p.span @> found.last) AS tiled
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
 CROSS JOIN tenants_tenant t
  LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
 CROSS JOIN LATERAL (
   SELECT count(*) AS stretches, min(ended.prev_at) AS first, max(ended.at) AS last
     FROM broker_transition ended
    WHERE ended.tenant_id = t.id AND ended.before = 'active'
      AND ended.xid >= CASE WHEN %(whole)s OR m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END
 ) found
 WHERE found.first IS NOT NULL AND (%(tenants)s::text[] IS NULL OR t.id = ANY(%(tenants)s::text[]))
 ORDER BY t.id
