-- Charge every billable stretch that has ended: stretch × price version × month, in one statement.
--
-- A stretch is a transition to `active` and the transition that follows it in the chain. What is new is what
-- transactions wrote since the tenant's mark; the new mark is the oldest transaction that this statement's
-- snapshot does not see the end of, so that nothing which commits late is passed over.
-- Written twice is impossible: the key of a charge is the intersection that it stands for.
WITH news AS (
  SELECT t.id, t.currency, snapshot.xmin,
         CASE WHEN %(whole)s OR m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END AS since
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingmark m ON m.tenant_id = t.id
   WHERE t.id = ANY(%(tenants)s)
), stretch AS (
  SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, begun.offering_id, begun.quantity,
         begun.at AS s, ended.at AS e, news.currency
    FROM news
    JOIN broker_transition ended
      ON ended.tenant_id = news.id AND ended.xid >= news.since AND ended.before = 'active'
    JOIN broker_transition begun ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq
   WHERE ended.at > begun.at
), price AS (
  SELECT id, offering_id, currency, nano_per_hour::numeric AS nano,
         lower(valid) AS since, coalesce(upper(valid), 'infinity') AS until
    FROM billing_priceversion
   WHERE rate_card_id = %(card)s
), month AS (
  SELECT p.id, p.tenant_id, lower(p.span) AS since, upper(p.span) AS until,
         CASE WHEN p.status = 'open' THEN p.id  -- late seconds of a closed month go on the next open invoice
              ELSE (SELECT n.id FROM billing_billingperiod n
                     WHERE n.tenant_id = p.tenant_id AND n.status = 'open' ORDER BY n.span LIMIT 1)
         END AS billed_id
    FROM billing_billingperiod p
   WHERE p.tenant_id = ANY(%(tenants)s) AND p.span && tstzrange(%(first)s, %(last)s)
), piece AS MATERIALIZED (
  SELECT stretch.lease_id, stretch.seq, price.id AS price_version_id, month.id AS period_id, month.billed_id,
         stretch.tenant_id, stretch.project_id, stretch.offering_id, price.nano,
         greatest(stretch.s, price.since, month.since) AS s, least(stretch.e, price.until, month.until) AS e,
         extract(epoch FROM least(stretch.e, price.until, month.until)
                          - greatest(stretch.s, price.since, month.since))::bigint
           * stretch.quantity AS unit_seconds
    FROM stretch
    JOIN price ON price.offering_id = stretch.offering_id AND price.currency = stretch.currency
              AND price.since < stretch.e AND price.until > stretch.s
    JOIN month ON month.tenant_id = stretch.tenant_id
              AND month.since < least(stretch.e, price.until) AND month.until > greatest(stretch.s, price.since)
), written AS (
  INSERT INTO billing_ratedcharge
         (lease_id, seq, price_version_id, period_id, meter, billed_period_id, tenant_id, project_id, offering_id,
          s, e, unit_seconds, exact_num, run_id)
  SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds', billed_id, tenant_id, project_id, offering_id,
         s, e, unit_seconds, unit_seconds * nano, %(run)s
    FROM piece
   WHERE NOT EXISTS (SELECT FROM billing_ratedcharge c
                      WHERE c.lease_id = piece.lease_id AND c.seq = piece.seq
                        AND c.price_version_id = piece.price_version_id AND c.period_id = piece.period_id
                        AND c.meter = 'slice_seconds')
      ON CONFLICT DO NOTHING
  RETURNING tenant_id
), marked AS (
  INSERT INTO billing_ratingmark (tenant_id, xid) SELECT id, xmin FROM news
      ON CONFLICT (tenant_id) DO UPDATE SET xid = excluded.xid
)
SELECT (SELECT coalesce(sum(extract(epoch FROM e - s)::bigint * quantity), 0)::bigint FROM stretch),
       (SELECT coalesce(sum(unit_seconds), 0)::bigint FROM piece),
       (SELECT count(*) FROM written),
       (SELECT array_agg(DISTINCT tenant_id) FROM written)
