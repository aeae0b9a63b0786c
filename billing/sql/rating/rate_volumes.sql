-- Charge what volumes used since their tenant's mark: interval × price version × billing period, in one statement.
--
-- An interval lies between two steps of a volume; its quantity is in GiB. Nothing is charged from before storage was
-- first sold; from then on every second has a price, or the run writes nothing. An interval with any charge is left
-- alone, and the key of a charge makes a second one impossible.
WITH changed_tenants AS (
  SELECT t.id, t.currency, snapshot.xmin,
         CASE WHEN %(whole)s OR m.storage_xid IS NULL OR m.storage_xid > snapshot.xmin THEN 0 ELSE m.storage_xid END AS since
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
   WHERE t.id = %(tenant)s
), stretch AS (
  SELECT step.volume_id, step.prev_seq AS seq, step.tenant_id, step.project_id, step.offering_id, step.prev_gib AS gib,
         greatest(step.prev_at, %(sold_since)s) AS s, step.at AS e, changed_tenants.currency
    FROM changed_tenants
    JOIN broker_volumesizechange step ON step.tenant_id = changed_tenants.id AND step.xid >= changed_tenants.since
   WHERE step.seq > 0 AND step.at > greatest(step.prev_at, %(sold_since)s::timestamptz)
     AND NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = step.volume_id AND c.seq = step.prev_seq)
), month AS MATERIALIZED (
  SELECT p.id, lower(p.span) AS since, upper(p.span) AS until,
         CASE WHEN p.status = 'open' THEN p.id  -- late seconds of a closed month go on the next open invoice, never on one opened again
              ELSE (SELECT n.id FROM billing_billingperiod n
                     WHERE n.tenant_id = p.tenant_id AND n.status = 'open' AND n.span >> p.span
                     ORDER BY n.span LIMIT 1)
         END AS billed_id
    FROM billing_billingperiod p
   WHERE p.tenant_id = %(tenant)s
), piece AS (
  SELECT *, extract(epoch FROM e - s)::bigint * gib AS unit_seconds
    FROM (SELECT stretch.volume_id, stretch.seq, stretch.tenant_id, stretch.project_id, stretch.offering_id, stretch.gib,
                 price.version_id, price.part, price.nano_per_hour::numeric AS nano, month.id AS period_id, month.billed_id,
                 greatest(stretch.s, lower(price.valid), month.since) AS s,
                 least(stretch.e, coalesce(upper(price.valid), 'infinity'), month.until) AS e
            FROM stretch
            JOIN billing_tenantprice price
              ON price.tenant_id = stretch.tenant_id AND price.offering_id = stretch.offering_id
             AND price.currency = stretch.currency AND price.valid && tstzrange(stretch.s, stretch.e)
            JOIN month ON month.since < stretch.e AND month.until > stretch.s
                      AND tstzrange(month.since, month.until) && price.valid) met
   WHERE e > s
), written AS (
  INSERT INTO billing_ratedcharge
         (lease_id, seq, price_version_id, period_id, meter, part, billed_period_id, tenant_id, project_id, offering_id,
          s, e, unit_seconds, exact_num, run_id, kind)
  SELECT volume_id, seq, version_id, period_id, %(meter)s, part, billed_id, tenant_id, project_id, offering_id,
         s, e, unit_seconds, unit_seconds * nano, %(run)s, 'usage'
    FROM piece
  RETURNING unit_seconds
), marked AS (
  INSERT INTO billing_ratingwatermark (tenant_id, xid, storage_xid) SELECT id, 0, xmin FROM changed_tenants
      ON CONFLICT (tenant_id) DO UPDATE SET storage_xid = excluded.storage_xid
)
SELECT (SELECT coalesce(sum(extract(epoch FROM e - s)::bigint * gib), 0) FROM stretch)::bigint,
       (SELECT coalesce(sum(unit_seconds), 0) FROM written)::bigint, (SELECT count(*) FROM written)
