-- List new intervals that prices and billing periods do not cover to the second, and by how many unit-seconds.
SELECT t.id, begun.lease_id, begun.seq, begun.offering_id, t.currency, begun.at, ended.at,
       used.unit_seconds - coalesce(covered.unit_seconds, 0)
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
 CROSS JOIN tenants_tenant t
  LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
  JOIN broker_transition ended ON ended.tenant_id = t.id AND ended.before = 'active'
   AND ended.xid >= CASE WHEN %(whole)s OR m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END
  JOIN broker_transition begun ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq
  LEFT JOIN billing_quote q ON q.lease_id = begun.lease_id AND q.offering_id = begun.offering_id
 CROSS JOIN LATERAL (
   SELECT extract(epoch FROM ended.at - begun.at)::bigint * begun.quantity AS unit_seconds
 ) used
 CROSS JOIN LATERAL (
   SELECT sum(extract(epoch FROM upper(shared) - lower(shared))::bigint)::bigint * begun.quantity AS unit_seconds
     FROM (SELECT v.valid
             FROM billing_tenantprice v
            WHERE q.id IS NULL AND v.tenant_id = t.id AND v.offering_id = begun.offering_id AND v.currency = t.currency
            UNION ALL
           SELECT '(,)'::tstzrange WHERE q.currency = t.currency) price
     JOIN billing_billingperiod p ON p.tenant_id = t.id
    CROSS JOIN LATERAL (SELECT price.valid * p.span * tstzrange(begun.at, ended.at) AS shared) met
    WHERE NOT isempty(shared)
 ) covered
 WHERE t.id = ANY(%(tenants)s) AND used.unit_seconds <> coalesce(covered.unit_seconds, 0)
 ORDER BY t.id, begun.lease_id, begun.seq
