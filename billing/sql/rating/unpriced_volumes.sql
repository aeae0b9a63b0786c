-- List volume intervals, since storage was first sold, for which their tenant has no price for every second: of all
-- tenants or of one; those not charged yet and those that continue until now.
WITH stretch AS (
  SELECT step.tenant_id, step.volume_id, step.prev_seq AS seq, step.offering_id, step.prev_gib AS gib,
         greatest(step.prev_at, %(sold_since)s) AS s, step.at AS e
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
    JOIN broker_volumesizechange step ON step.tenant_id = t.id AND step.seq > 0
     AND step.xid >= CASE WHEN m.storage_xid IS NULL OR m.storage_xid > snapshot.xmin THEN 0 ELSE m.storage_xid END
   WHERE NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = step.volume_id AND c.seq = step.prev_seq)
   UNION ALL
  SELECT v.tenant_id, v.id, last.seq, last.offering_id, last.size_gib, greatest(last.at, %(sold_since)s),
         date_trunc('second', %(now)s::timestamptz)
    FROM broker_volume v
   CROSS JOIN LATERAL (SELECT * FROM broker_volumesizechange step WHERE step.volume_id = v.id ORDER BY step.seq DESC LIMIT 1) last
   WHERE last.size_gib > 0 AND v.state = 'ready'
)
SELECT stretch.tenant_id, t.name, stretch.volume_id, stretch.seq, stretch.offering_id, o.label, t.currency,
       stretch.s, stretch.e, (extract(epoch FROM stretch.e - stretch.s)::bigint - covered.seconds) * stretch.gib
  FROM stretch
  JOIN tenants_tenant t ON t.id = stretch.tenant_id
  JOIN broker_offering o ON o.id = stretch.offering_id
 CROSS JOIN LATERAL (
   SELECT coalesce(sum(extract(epoch FROM upper(shared) - lower(shared))::bigint), 0)::bigint AS seconds
     FROM billing_tenantprice price
    CROSS JOIN LATERAL (SELECT price.valid * tstzrange(stretch.s, stretch.e) AS shared) met
    WHERE price.tenant_id = stretch.tenant_id AND price.offering_id = stretch.offering_id AND price.currency = t.currency
      AND NOT isempty(shared)
 ) covered
 WHERE stretch.e > stretch.s AND extract(epoch FROM stretch.e - stretch.s)::bigint > covered.seconds
   AND (%(tenant)s::text IS NULL OR stretch.tenant_id = %(tenant)s)
 ORDER BY t.name, stretch.volume_id, stretch.seq
