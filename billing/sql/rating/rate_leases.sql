-- Charge every billable interval that has ended: interval × price version × billing period, in one statement.
--
-- An interval lies between a transition to `active` and the next one of the lease. New intervals are those written by
-- transactions since the tenant's mark; the new mark is the oldest transaction that this statement's snapshot does not
-- see the end of, so that nothing which commits late is missed.
-- An interval is charged to its last second or not at all (the caller ensures that), so one with any charge is left
-- alone; and the key of a charge, the intersection that it stands for, makes a second one impossible. Only one run at
-- a time gets here, so none waits for another's key.
-- A run that was preempted before the free interruption time of its price is charged and refunded in the same
-- statement: each charge since its start is repeated negatively on the same invoice, so no line becomes negative.
-- Intervals and prices are joined by `fixed`. Where a tenant has its own prices for an offering, it is minus their rate
-- card, and list prices apply in the remaining parts; otherwise it is 0. A lease that cites a quote pays the same, but
-- never more than the quoted price, which also fills gaps between prices: its intervals are joined by `ceiling` too,
-- which is the quote's price version. What a lease with an older quote pays is fixed: such intervals are joined by that
-- version alone.
WITH changed_tenants AS (
  SELECT t.id, t.currency, snapshot.xmin,
         CASE WHEN %(whole)s OR m.xid IS NULL OR m.xid > snapshot.xmin THEN 0 ELSE m.xid END AS since
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) snapshot
   CROSS JOIN tenants_tenant t
    LEFT JOIN billing_ratingwatermark m ON m.tenant_id = t.id
   WHERE t.id = ANY(%(tenants)s)
), own AS MATERIALIZED (
  SELECT DISTINCT tenant_id, offering_id, currency, rate_card_id AS rate_card
    FROM billing_priceversion
   WHERE tenant_id = ANY(%(tenants)s)
), taken AS MATERIALIZED (  -- preempted runs, which are few; only for these is the run time computed
  SELECT over.lease_id
    FROM changed_tenants
    JOIN broker_transition over
      ON over.tenant_id = changed_tenants.id AND over.xid >= changed_tenants.since AND over.before = 'active'
     AND over.reason = 'preempted'
), stretch AS (
  SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, begun.offering_id, begun.quantity,
         begun.at AS s, ended.at AS e, changed_tenants.currency,
         CASE WHEN q.is_ceiling AND q.currency = changed_tenants.currency THEN q.price_version_id ELSE 0 END AS ceiling,
         CASE WHEN q.id IS NOT NULL AND NOT (q.is_ceiling AND q.currency = changed_tenants.currency)
              THEN q.price_version_id ELSE coalesce(-own.rate_card, 0) END AS fixed,
         ended.reason = 'preempted' AND begun.before = 'active' AS ends_it,
         CASE WHEN begun.lease_id IN (SELECT lease_id FROM taken) THEN (
           SELECT extract(epoch FROM over.at - run.at)::bigint
             FROM (SELECT t.at, t.reason FROM broker_transition t
                    WHERE t.lease_id = begun.lease_id AND t.seq > begun.seq AND t.after <> 'active'
                    ORDER BY t.seq LIMIT 1) over
            CROSS JOIN (SELECT t.at FROM broker_transition t
                         WHERE t.lease_id = begun.lease_id AND t.seq <= begun.seq
                           AND t.after = 'active' AND t.before <> 'active'
                         ORDER BY t.seq DESC LIMIT 1) run
            WHERE over.reason = 'preempted'
         ) END AS ran  -- without interruption, until it was preempted
    FROM changed_tenants
    JOIN broker_transition ended
      ON ended.tenant_id = changed_tenants.id AND ended.xid >= changed_tenants.since AND ended.before = 'active'
    JOIN broker_transition begun
      ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq AND begun.after = 'active'
    LEFT JOIN billing_quote q ON q.lease_id = begun.lease_id AND q.offering_id = begun.offering_id
    LEFT JOIN own ON own.tenant_id = begun.tenant_id AND own.offering_id = begun.offering_id
                 AND own.currency = changed_tenants.currency
   WHERE (ended.at > begun.at OR ended.reason = 'preempted')
     AND NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = ended.lease_id AND c.seq = ended.prev_seq)
), version AS MATERIALIZED (
  SELECT id, offering_id, currency, nano_per_hour::numeric AS nano,
         lower(valid) AS since, coalesce(upper(valid), 'infinity') AS until, 0::bigint AS fixed, 0::smallint AS part,
         free_start_s
    FROM billing_priceversion
   WHERE rate_card_id = %(rate_card)s
   UNION ALL
  SELECT own.version_id, own.offering_id, own.currency, own.nano_per_hour::numeric,
         lower(own.valid), coalesce(upper(own.valid), 'infinity'), -own.card_id, own.part,
         (SELECT v.free_start_s FROM billing_priceversion v WHERE v.id = own.version_id)
    FROM billing_tenantprice own  -- `card_id` is tested too, so that tenants without own prices are skipped
   WHERE own.card_id IS NOT NULL AND own.card_id = ANY(ARRAY(SELECT DISTINCT -fixed FROM stretch WHERE fixed < 0))
     AND own.tenant_id = ANY(%(tenants)s)
   UNION ALL
  SELECT id, offering_id, currency, nano_per_hour::numeric, '-infinity', 'infinity', id, 0, free_start_s
    FROM billing_priceversion
   WHERE id = ANY(ARRAY(SELECT DISTINCT fixed FROM stretch WHERE fixed > 0))
), price AS MATERIALIZED (
  SELECT version.*, 0::bigint AS ceiling FROM version
   UNION ALL  -- `part` numbers those that can apply to one interval
  SELECT CASE WHEN found.nano <= most.nano_per_hour THEN found.id ELSE most.id END, found.offering_id, found.currency,
         least(found.nano, most.nano_per_hour), found.since, found.until, found.fixed,
         row_number() OVER (PARTITION BY most.id, found.offering_id, found.fixed ORDER BY found.since)::smallint,
         CASE WHEN found.nano <= most.nano_per_hour THEN found.free_start_s ELSE most.free_start_s END, most.id
    FROM (SELECT DISTINCT ceiling, fixed FROM stretch WHERE ceiling > 0) cited
    JOIN billing_priceversion most ON most.id = cited.ceiling
    JOIN (SELECT * FROM version
           UNION ALL
          SELECT NULL, offering_id, currency, NULL, coalesce(lower(gap), '-infinity'), coalesce(upper(gap), 'infinity'),
                 fixed, 0, NULL
            FROM (SELECT offering_id, currency, fixed, '{(,)}'::tstzmultirange - range_agg(tstzrange(since, until)) AS gaps
                    FROM version
                   GROUP BY 1, 2, 3) without
           CROSS JOIN unnest(gaps) AS gap) found
      ON found.fixed = cited.fixed AND found.offering_id = most.offering_id AND found.currency = most.currency
     AND found.since < %(last)s AND found.until > %(first)s
), month AS MATERIALIZED (
  SELECT p.id, p.tenant_id, lower(p.span) AS since, upper(p.span) AS until,
         CASE WHEN p.status = 'open' THEN p.id  -- late seconds of a closed month go on the next open invoice, never on one opened again
              ELSE (SELECT n.id FROM billing_billingperiod n
                     WHERE n.tenant_id = p.tenant_id AND n.status = 'open' AND n.span >> p.span
                     ORDER BY n.span LIMIT 1)
         END AS billed_id
    FROM billing_billingperiod p
   WHERE p.tenant_id = ANY(%(tenants)s) AND p.span && tstzrange(%(first)s, %(last)s)
), priced AS (
  SELECT stretch.*, price.id AS price_version_id, price.part, price.nano, price.since, price.until,
         stretch.ran < price.free_start_s AS free
    FROM stretch
    JOIN price ON price.offering_id = stretch.offering_id AND price.currency = stretch.currency
              AND price.fixed = stretch.fixed AND price.ceiling = stretch.ceiling
              AND price.since < stretch.e AND price.until > stretch.s
   WHERE stretch.e > stretch.s
  OFFSET 0  -- joins prices before billing periods: an offering has few
), piece AS (
  SELECT *, extract(epoch FROM e - s)::bigint * quantity AS unit_seconds
    FROM (SELECT p.lease_id, p.seq, p.tenant_id, p.project_id, p.offering_id, p.quantity, p.price_version_id, p.part,
                 p.nano, p.free, month.id AS period_id, month.billed_id,
                 greatest(p.s, p.since, month.since) AS s, least(p.e, p.until, month.until) AS e
            FROM priced p
            JOIN month ON month.tenant_id = p.tenant_id AND month.since < p.e AND month.until > p.s
                      AND month.since < p.until AND month.until > p.since) met
   OFFSET 0  -- computes the seconds once, not again for the amount
), given AS (  -- charged before the preemption; in a closed month a credit note refunds it
  SELECT earlier.*
    FROM stretch
   CROSS JOIN LATERAL (  -- few rows, each found by its key
     SELECT c.*
       FROM billing_ratedcharge c
       JOIN billing_billingperiod m ON m.id = c.billed_period_id AND m.status = 'open'
       JOIN billing_priceversion v ON v.id = c.price_version_id AND v.free_start_s > stretch.ran
      WHERE c.lease_id = stretch.lease_id AND c.seq < stretch.seq AND c.kind = 'usage'
        AND c.seq >= (SELECT max(t.seq) FROM broker_transition t
                       WHERE t.lease_id = stretch.lease_id AND t.seq < stretch.seq
                         AND t.after = 'active' AND t.before <> 'active')
        AND NOT EXISTS (SELECT FROM billing_ratedcharge a
                         WHERE a.lease_id = c.lease_id AND a.seq = c.seq AND a.kind = 'adjust')
     OFFSET 0
   ) earlier
   WHERE stretch.ends_it
), written AS (
  INSERT INTO billing_ratedcharge
         (lease_id, seq, price_version_id, period_id, meter, part, billed_period_id, tenant_id, project_id, offering_id,
          s, e, unit_seconds, exact_num, run_id, kind)
  SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds', part, billed_id, tenant_id, project_id, offering_id,
         s, e, unit_seconds, unit_seconds * nano, %(run)s, 'usage'
    FROM piece
   UNION ALL
  SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds', part, billed_id, tenant_id, project_id, offering_id,
         s, e, -unit_seconds, -unit_seconds * nano, %(run)s, 'adjust'
    FROM piece
   WHERE free
   UNION ALL
  SELECT lease_id, seq, price_version_id, period_id, meter, part, billed_period_id, tenant_id, project_id, offering_id,
         s, e, -unit_seconds, -exact_num, %(run)s, 'adjust'
    FROM given
  RETURNING unit_seconds
), marked AS (
  INSERT INTO billing_ratingwatermark (tenant_id, xid) SELECT id, xmin FROM changed_tenants
      ON CONFLICT (tenant_id) DO UPDATE SET xid = excluded.xid
)
SELECT coalesce(used.unit_seconds, 0)::bigint, coalesce(charged.unit_seconds, 0)::bigint, charged.charges
  FROM (SELECT sum(extract(epoch FROM length)::bigint * quantity) AS unit_seconds
          FROM (SELECT quantity, sum(e - s) AS length FROM stretch GROUP BY quantity) alike) used
 CROSS JOIN (SELECT sum(unit_seconds) FILTER (WHERE unit_seconds > 0) AS unit_seconds, count(*) AS charges
               FROM written) charged
