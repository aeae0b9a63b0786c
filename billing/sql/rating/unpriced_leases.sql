-- List intervals for which their tenant has no price for every second: those ended since the tenant's last rating, and
-- those still active. Most are covered by one price version, which is tested without reading each.
WITH stretch AS (
  SELECT begun.tenant_id, begun.lease_id, begun.seq, begun.offering_id, begun.quantity, begun.at AS s, ended.at AS e
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
    JOIN broker_transition ended ON ended.tenant_id = t.id AND ended.before = 'active'
     AND ended.xid >= CASE WHEN m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END
    JOIN broker_transition begun ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq
   WHERE ended.at > begun.at
   UNION ALL
  SELECT tenant_id, id, seq, offering_id, quantity, state_since, date_trunc('second', %(now)s::timestamptz)
    FROM broker_lease
   WHERE state = 'active' AND state_since < date_trunc('second', %(now)s::timestamptz)
), price AS MATERIALIZED (
  SELECT v.offering_id, v.currency, v.valid, 0::bigint AS rate_card FROM billing_priceversion v WHERE v.tenant_id IS NULL
   UNION ALL
  SELECT offering_id, currency, valid, card_id FROM billing_tenantprice WHERE card_id IS NOT NULL
), own AS MATERIALIZED (
  SELECT DISTINCT tenant_id, offering_id, currency, rate_card_id AS rate_card
    FROM billing_priceversion
   WHERE tenant_id IS NOT NULL
), unpriced AS MATERIALIZED (
  SELECT stretch.*, t.name, t.currency, coalesce(own.rate_card, 0) AS rate_card
    FROM stretch
    JOIN tenants_tenant t ON t.id = stretch.tenant_id
    LEFT JOIN own ON own.tenant_id = t.id AND own.offering_id = stretch.offering_id AND own.currency = t.currency
   WHERE NOT EXISTS (SELECT FROM price WHERE price.offering_id = stretch.offering_id AND price.currency = t.currency
                        AND price.rate_card = coalesce(own.rate_card, 0)
                        AND price.valid @> tstzrange(stretch.s, stretch.e))
     AND NOT EXISTS (SELECT FROM billing_quote q
                      WHERE q.lease_id = stretch.lease_id AND q.offering_id = stretch.offering_id)
)
SELECT unpriced.tenant_id, unpriced.name, unpriced.lease_id, unpriced.seq, unpriced.offering_id, o.label,
       unpriced.currency, unpriced.s, unpriced.e,
       (extract(epoch FROM unpriced.e - unpriced.s)::bigint - covered.seconds) * unpriced.quantity
  FROM unpriced
  JOIN broker_offering o ON o.id = unpriced.offering_id
 CROSS JOIN LATERAL (
   SELECT coalesce(sum(extract(epoch FROM upper(shared) - lower(shared))::bigint), 0)::bigint AS seconds
     FROM price
    CROSS JOIN LATERAL (SELECT price.valid * tstzrange(unpriced.s, unpriced.e) AS shared) met
    WHERE price.offering_id = unpriced.offering_id AND price.currency = unpriced.currency
      AND price.rate_card = unpriced.rate_card AND NOT isempty(shared)
 ) covered
 WHERE extract(epoch FROM unpriced.e - unpriced.s)::bigint > covered.seconds
 ORDER BY unpriced.name, unpriced.lease_id, unpriced.seq
