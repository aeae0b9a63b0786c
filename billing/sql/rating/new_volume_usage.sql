-- List tenants whose volumes have new steps since their mark, and since when.
SELECT t.id, found.first, found.last
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
 CROSS JOIN tenants_tenant t
  LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
 CROSS JOIN LATERAL (
   SELECT min(greatest(step.prev_at, %(sold_since)s)) AS first, max(step.at) AS last
     FROM broker_volumesizechange step
    WHERE step.tenant_id = t.id AND step.seq > 0 AND step.at > greatest(step.prev_at, %(sold_since)s::timestamptz)
      AND step.xid >= CASE WHEN %(whole)s OR m.storage_xid IS NULL OR m.storage_xid > snapshot.xmin
                           THEN 0 ELSE m.storage_xid END
 ) found
 WHERE found.first IS NOT NULL AND (%(tenants)s::text[] IS NULL OR t.id = ANY(%(tenants)s::text[]))
 ORDER BY t.id
