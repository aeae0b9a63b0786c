-- Sum the cost of use between two moments, to the second, as pieces of one price each: existing charges, and an
-- estimate at current knowledge of what is not charged yet, whether the interval is still open or has just ended.
-- Refunded use counts negative, by its quantity.
WITH charged AS (
  SELECT c.lease_id, c.tenant_id, c.project_id, c.offering_id, c.price_version_id AS version, c.s, c.e,
         div(c.exact_num, c.unit_seconds) AS nano, c.unit_seconds / extract(epoch FROM c.e - c.s)::bigint AS quantity,
         c.meter
    FROM billing_ratedcharge c
   WHERE c.e > %(since)s AND c.s < %(until)s
     AND (%(leases)s::text[] IS NULL OR c.lease_id = ANY(%(leases)s::text[]))
     AND (%(leases)s::text[] IS NOT NULL
          OR c.period_id = ANY(ARRAY(SELECT p.id FROM billing_billingperiod p
                                      WHERE p.span && tstzrange(%(since)s, %(until)s))))
), silent AS MATERIALIZED (  -- leases of unreachable clusters, and since when
  SELECT a.lease_id, min(c.unreachable_since) AS since
    FROM broker_cluster c
    JOIN broker_node n ON n.cluster_id = c.id
    JOIN broker_gpu g ON g.node_id = n.id
    JOIN broker_allocation a ON a.gpu_id = g.id AND a.released_at IS NULL AND a.leaving_since IS NULL
   WHERE c.unreachable_since IS NOT NULL
   GROUP BY a.lease_id
), running AS (  -- as long as it would be charged if it ended now: `last_moment` of the broker
  SELECT l.id AS lease_id, l.tenant_id, l.project_id, l.offering_id, l.quantity, l.state_since AS s,
         date_trunc('second', least(%(until)s::timestamptz, l.ends_at,
           CASE WHEN l.seen_at IS NOT NULL AND l.conditions ? 'unreachable' THEN l.seen_at
                WHEN silent.since IS NOT NULL THEN greatest(silent.since, coalesce(l.seen_at, l.state_since)) END)) AS e
    FROM broker_lease l
    LEFT JOIN silent ON silent.lease_id = l.id
   WHERE l.state = 'active' AND l.state_since < %(until)s
     AND (%(leases)s::text[] IS NULL OR l.id = ANY(%(leases)s::text[]))
  OFFSET 0  -- computes the end once
), unrated AS (
  SELECT * FROM running WHERE e > s AND e > %(since)s
   UNION ALL
  SELECT begun.lease_id, begun.tenant_id, begun.project_id, begun.offering_id, begun.quantity, begun.at, ended.at
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
    JOIN broker_transition ended ON ended.tenant_id = t.id AND ended.before = 'active'
     AND ended.xid >= CASE WHEN m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END
    JOIN broker_transition begun
      ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq AND begun.after = 'active'
   WHERE ended.at > %(since)s AND begun.at < %(until)s AND ended.at > begun.at
     AND (%(leases)s::text[] IS NULL OR ended.lease_id = ANY(%(leases)s::text[]))
     AND NOT EXISTS (SELECT FROM billing_ratedcharge c
                      WHERE c.lease_id = ended.lease_id AND c.seq = ended.prev_seq)
), uncharged AS MATERIALIZED (  -- at no more than the price of its quote, if it cites one; exactly that, if it is older
  SELECT unrated.*, q.price_version_id AS version, q.nano_per_hour::numeric AS promised, q.is_ceiling AS ceiling
    FROM unrated
    LEFT JOIN billing_quote q ON q.lease_id = unrated.lease_id AND q.offering_id = unrated.offering_id
), stored AS (  -- volume use not charged yet, in GiB, since storage is sold
  SELECT kept.volume_id AS lease_id, kept.tenant_id, kept.project_id, kept.offering_id, kept.gib AS quantity,
         greatest(kept.s, sold.since) AS s, kept.e
    FROM (SELECT min(lower(v.valid)) AS since
            FROM broker_offering o JOIN billing_priceversion v ON v.offering_id = o.id AND v.tenant_id IS NULL
           WHERE o.state = 'metered') sold
   CROSS JOIN LATERAL (
     SELECT last.volume_id, last.tenant_id, last.project_id, last.offering_id, last.size_gib AS gib, last.at AS s,
            date_trunc('second', %(until)s::timestamptz) AS e
       FROM broker_volume v
      CROSS JOIN LATERAL (SELECT * FROM broker_volumesizechange step WHERE step.volume_id = v.id ORDER BY step.seq DESC LIMIT 1) last
      WHERE v.state = 'ready' AND last.size_gib > 0 AND (%(leases)s::text[] IS NULL OR v.id = ANY(%(leases)s::text[]))
      UNION ALL
     SELECT step.volume_id, step.tenant_id, step.project_id, step.offering_id, step.prev_gib, step.prev_at, step.at
       FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
      CROSS JOIN tenants_tenant t
       LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
       JOIN broker_volumesizechange step ON step.tenant_id = t.id AND step.seq > 0
        AND step.xid >= CASE WHEN m.storage_xid IS NULL OR m.storage_xid > snapshot.xmin THEN 0 ELSE m.storage_xid END
      WHERE (%(leases)s::text[] IS NULL OR step.volume_id = ANY(%(leases)s::text[]))
        AND NOT EXISTS (SELECT FROM billing_ratedcharge c
                         WHERE c.lease_id = step.volume_id AND c.seq = step.prev_seq)
   ) kept
   WHERE kept.e > greatest(kept.s, sold.since, %(since)s::timestamptz) AND kept.s < %(until)s
), known AS MATERIALIZED (
  SELECT t.id AS tenant_id, v.offering_id, v.version_id AS version, v.nano_per_hour::numeric AS nano,
         lower(v.valid) AS since, coalesce(upper(v.valid), 'infinity') AS until
    FROM tenants_tenant t
    JOIN billing_tenantprice v ON v.tenant_id = t.id AND v.currency = t.currency
   WHERE v.valid && tstzrange(%(since)s, %(until)s)
), price AS MATERIALIZED (  -- a gap between prices has no version
  SELECT * FROM known
   UNION ALL
  SELECT tenant_id, offering_id, NULL, NULL, coalesce(lower(gap), '-infinity'), coalesce(upper(gap), 'infinity')
    FROM (SELECT tenant_id, offering_id, '{(,)}'::tstzmultirange - range_agg(tstzrange(since, until)) AS gaps
            FROM known
           WHERE (tenant_id, offering_id) IN (SELECT tenant_id, offering_id FROM uncharged WHERE ceiling)
           GROUP BY 1, 2) without
   CROSS JOIN unnest(gaps) AS gap
   UNION ALL
  SELECT DISTINCT u.tenant_id, u.offering_id, NULL::bigint, NULL::numeric, '-infinity'::timestamptz, 'infinity'::timestamptz
    FROM uncharged u
   WHERE u.ceiling AND NOT EXISTS (SELECT FROM known
                                    WHERE known.tenant_id = u.tenant_id AND known.offering_id = u.offering_id)
), used AS (
  SELECT lease_id, tenant_id, project_id, offering_id, version, quantity, nano,
         greatest(s, %(since)s) AS s, least(e, %(until)s) AS e, meter
    FROM charged
   UNION ALL
  SELECT u.lease_id, u.tenant_id, u.project_id, u.offering_id,
         CASE WHEN price.nano <= u.promised OR u.promised IS NULL THEN price.version ELSE u.version END, u.quantity,
         least(price.nano, u.promised), greatest(u.s, price.since, %(since)s), least(u.e, price.until, %(until)s),
         'slice_seconds'
    FROM uncharged u
    JOIN price ON price.tenant_id = u.tenant_id AND price.offering_id = u.offering_id
              AND price.since < least(u.e, %(until)s) AND price.until > greatest(u.s, %(since)s)
              AND (price.version IS NOT NULL OR u.ceiling)
   WHERE u.promised IS NULL OR u.ceiling
   UNION ALL
  SELECT lease_id, tenant_id, project_id, offering_id, version, quantity, promised,
         greatest(s, %(since)s), least(e, %(until)s), 'slice_seconds'
    FROM uncharged
   WHERE NOT ceiling AND e > %(since)s AND s < %(until)s
   UNION ALL
  SELECT k.lease_id, k.tenant_id, k.project_id, k.offering_id, price.version, k.quantity, price.nano,
         greatest(k.s, price.since, %(since)s), least(k.e, price.until, %(until)s), 'gib_seconds'
    FROM stored k
    JOIN known price ON price.tenant_id = k.tenant_id AND price.offering_id = k.offering_id
              AND price.since < least(k.e, %(until)s) AND price.until > greatest(k.s, %(since)s)
), mine AS (
  SELECT * FROM used WHERE %(projects)s::text[] IS NULL OR project_id = ANY(%(projects)s::text[])
)
