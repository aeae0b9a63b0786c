-- Charge every billable stretch that has ended: stretch × price version × month, in one statement.
--
-- A stretch is a transition to `active` and the transition that follows it in the chain. What is new is what
-- transactions wrote since the tenant's mark; the new mark is the oldest transaction that this statement's
-- snapshot does not see the end of, so that nothing which commits late is passed over.
-- A stretch is charged to its last second or not at all (rating.py sees to that), so one that has any charge is
-- left alone; and the key of a charge, the intersection that it stands for, makes a second one impossible.
-- Only one run at a time gets here, so none waits for another's key.
-- What was taken back before it ran as long as its price asks for is charged, and in the same breath given back: every
-- charge since that start once more, less than nought, on the same invoice; so no line comes to less than nought.
-- A lease that cites a quote has the quote's price version for its whole life, whenever that was valid: such
-- stretches and prices find each other by `fixed`, which is that version. Where a tenant has prices of its own for an
-- offering it is minus their card, and the list's prices hold in the parts that are left beside them; else it is 0.
WITH news AS (
  SELECT t.id, t.currency, snapshot.xmin,
         CASE WHEN %(whole)s OR m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END AS since
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingmark m ON m.tenant_id = t.id
   WHERE t.id = ANY(%(tenants)s)
), own AS MATERIALIZED (
  SELECT DISTINCT tenant_id, offering_id, currency, rate_card_id AS card
    FROM billing_priceversion
   WHERE tenant_id = ANY(%(tenants)s)
), stretch AS (
  SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, begun.offering_id, begun.quantity,
         begun.at AS s, ended.at AS e, ended.reason = 'preempted' AS taken, news.currency, coalesce(q.price_version_id, -own.card, 0) AS fixed
    FROM news
    JOIN broker_transition ended
      ON ended.tenant_id = news.id AND ended.xid >= news.since AND ended.before = 'active'
    JOIN broker_transition begun
      ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq AND begun.after = 'active'
    LEFT JOIN billing_quote q ON q.lease_id = begun.lease_id AND q.offering_id = begun.offering_id
    LEFT JOIN own ON own.tenant_id = begun.tenant_id AND own.offering_id = begun.offering_id
                 AND own.currency = news.currency
   WHERE (ended.at > begun.at OR ended.reason = 'preempted')
     AND NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = ended.lease_id AND c.seq = ended.prev_seq)
), price AS MATERIALIZED (
  SELECT id, offering_id, currency, nano_per_hour::numeric AS nano,
         lower(valid) AS since, coalesce(upper(valid), 'infinity') AS until, 0::bigint AS fixed, 0::smallint AS part
    FROM billing_priceversion
   WHERE rate_card_id = %(card)s
   UNION ALL
  SELECT version_id, offering_id, currency, nano_per_hour::numeric,
         lower(valid), coalesce(upper(valid), 'infinity'), -card_id, part
    FROM billing_tenantprice
   WHERE card_id IS NOT NULL AND tenant_id = ANY(%(tenants)s)
   UNION ALL
  SELECT id, offering_id, currency, nano_per_hour::numeric, '-infinity', 'infinity', id, 0 FROM billing_priceversion
), month AS MATERIALIZED (
  SELECT p.id, p.tenant_id, lower(p.span) AS since, upper(p.span) AS until,
         CASE WHEN p.status = 'open' THEN p.id  -- late seconds of a closed month go on the next open invoice
              ELSE (SELECT n.id FROM billing_billingperiod n
                     WHERE n.tenant_id = p.tenant_id AND n.status = 'open' ORDER BY n.span LIMIT 1)
         END AS billed_id
    FROM billing_billingperiod p
   WHERE p.tenant_id = ANY(%(tenants)s) AND p.span && tstzrange(%(first)s, %(last)s)
), piece AS (
  SELECT *, extract(epoch FROM e - s)::bigint * quantity AS unit_seconds
    FROM (SELECT stretch.lease_id, stretch.seq, stretch.tenant_id, stretch.project_id, stretch.offering_id,
                 stretch.quantity, price.id AS price_version_id, price.part, price.nano, month.id AS period_id, month.billed_id,
                 greatest(stretch.s, price.since, month.since) AS s, least(stretch.e, price.until, month.until) AS e
            FROM stretch
            JOIN price ON stretch.e > stretch.s AND price.offering_id = stretch.offering_id AND price.currency = stretch.currency
                      AND price.fixed = stretch.fixed AND price.since < stretch.e AND price.until > stretch.s
            JOIN month ON month.tenant_id = stretch.tenant_id
                      AND month.since < stretch.e AND month.until > stretch.s
                      AND month.since < price.until AND month.until > price.since) met
   OFFSET 0  -- so that the seconds are worked out once and not again for the amount
), taken AS MATERIALIZED (  -- from which transition on it ran, and for how long in all
  SELECT stretch.lease_id, run.seq AS first, stretch.seq AS last, extract(epoch FROM stretch.e - run.at)::bigint AS seconds
    FROM stretch
   CROSS JOIN LATERAL (
     SELECT t.seq, t.at FROM broker_transition t
      WHERE t.lease_id = stretch.lease_id AND t.seq <= stretch.seq AND t.after = 'active' AND t.before <> 'active'
      ORDER BY t.seq DESC LIMIT 1
   ) run
   WHERE stretch.taken
), given AS (
  SELECT p.lease_id, p.seq, p.price_version_id, p.period_id, p.part, p.billed_id, p.tenant_id, p.project_id, p.offering_id,
         p.s, p.e, p.unit_seconds, p.unit_seconds * p.nano AS exact_num
    FROM taken
    JOIN piece p ON p.lease_id = taken.lease_id AND p.seq BETWEEN taken.first AND taken.last
    JOIN billing_priceversion v ON v.id = p.price_version_id AND v.free_start_s > taken.seconds
   UNION ALL  -- what was charged before; of a month that is closed, a credit note gives it back
  SELECT c.lease_id, c.seq, c.price_version_id, c.period_id, c.part, c.billed_period_id, c.tenant_id, c.project_id,
         c.offering_id, c.s, c.e, c.unit_seconds, c.exact_num
    FROM taken
    JOIN billing_ratedcharge c ON c.lease_id = taken.lease_id AND c.seq BETWEEN taken.first AND taken.last
                              AND c.kind = 'usage'
                              AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                                               WHERE a.lease_id = c.lease_id AND a.seq = c.seq AND a.kind = 'adjust')
    JOIN billing_billingperiod m ON m.id = c.billed_period_id AND m.status = 'open'
    JOIN billing_priceversion v ON v.id = c.price_version_id AND v.free_start_s > taken.seconds
), written AS (
  INSERT INTO billing_ratedcharge
         (lease_id, seq, price_version_id, period_id, meter, part, billed_period_id, tenant_id, project_id, offering_id,
          s, e, unit_seconds, exact_num, run_id, kind)
  SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds', part, billed_id, tenant_id, project_id, offering_id,
         s, e, unit_seconds, unit_seconds * nano, %(run)s, 'usage'
    FROM piece
   UNION ALL
  SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds', part, billed_id, tenant_id, project_id, offering_id,
         s, e, -unit_seconds, -exact_num, %(run)s, 'adjust'
    FROM given
  RETURNING unit_seconds
), marked AS (
  INSERT INTO billing_ratingmark (tenant_id, xid) SELECT id, xmin FROM news
      ON CONFLICT (tenant_id) DO UPDATE SET xid = excluded.xid
)
SELECT coalesce(used.unit_seconds, 0)::bigint, coalesce(charged.unit_seconds, 0)::bigint, charged.charges
  FROM (SELECT sum(extract(epoch FROM length)::bigint * quantity) AS unit_seconds
          FROM (SELECT quantity, sum(e - s) AS length FROM stretch GROUP BY quantity) alike) used
 CROSS JOIN (SELECT sum(unit_seconds) FILTER (WHERE unit_seconds > 0) AS unit_seconds, count(*) AS charges
               FROM written) charged
