-- Sum a lease's charges in each open month, on how many lines, and what it holds of the wallet for that month. For
-- months with an invoice it holds nothing: closing a month releases the hold under the wallet's lock. For a
-- month that was opened again nothing either: what its cancelled invoice gave back is kept for it as a whole.
SELECT p.id, c.num, coalesce(c.lines, 0), w.num
  FROM billing_billingperiod p
  LEFT JOIN (SELECT billed_period_id, sum(exact_num) AS num, count(DISTINCT price_version_id) AS lines
               FROM billing_ratedcharge WHERE lease_id = %(lease)s GROUP BY billed_period_id) c
    ON c.billed_period_id = p.id
  LEFT JOIN billing_walletpart w ON w.tenant_id = p.tenant_id AND w.hold_id = %(hold)s AND w.period_id = p.id
 WHERE p.tenant_id = %(tenant)s AND p.status = 'open' AND p.revision = 0
 ORDER BY p.span
