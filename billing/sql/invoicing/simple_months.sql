-- List months that need no special treatment: no earlier month is open, it was not opened again, it is paid by invoice
-- without existing credit, it has no adjustments, and nothing of it is still running. OFFSET 0 makes PostgreSQL evaluate
-- a condition month by month: for all tenants at once, each would read all charges and accounts.
SELECT p.tenant_id
  FROM billing_billingperiod p
 WHERE p.tenant_id = ANY(%(tenants)s) AND p.label = %(label)s AND p.revision = 0
   AND NOT EXISTS (SELECT FROM billing_billingperiod e
                    WHERE e.tenant_id = p.tenant_id AND e.status = 'open' AND e.span << p.span)
   AND NOT EXISTS (SELECT FROM billing_accountterms t WHERE t.tenant_id = p.tenant_id AND t.payment = 'prepaid')
   AND NOT EXISTS (SELECT FROM billing_walletpart w WHERE w.period_id = p.id)
   AND NOT EXISTS (SELECT FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
                    WHERE a.tenant_id = p.tenant_id AND a.type IN ('wallet_paid', 'wallet_promo') AND b.minor > 0 OFFSET 0)
   AND NOT EXISTS (SELECT FROM billing_discount d WHERE d.tenant_id = p.tenant_id)
   AND NOT EXISTS (SELECT FROM billing_minimum m WHERE m.tenant_id = p.tenant_id)
   AND NOT EXISTS (SELECT FROM billing_commitment c WHERE c.tenant_id = p.tenant_id)
   AND (NOT EXISTS (SELECT FROM billing_priceversion WHERE model <> 'flat')
     OR NOT EXISTS (SELECT FROM billing_billingperiod o
                     CROSS JOIN LATERAL (
                       SELECT offering_id FROM billing_ratedcharge WHERE period_id = o.id AND billed_period_id = o.id
                        UNION ALL
                       SELECT offering_id FROM billing_ratedcharge
                        WHERE billed_period_id = o.id AND billed_period_id <> period_id) c
                      JOIN billing_priceversion v ON v.offering_id = c.offering_id AND v.model <> 'flat'
                     WHERE o.tenant_id = p.tenant_id AND o.status = 'open' OFFSET 0))
   AND NOT EXISTS (SELECT FROM broker_lease l
                    WHERE l.tenant_id = p.tenant_id AND l.state = 'active' AND l.state_since < upper(p.span))
   AND NOT EXISTS (SELECT FROM broker_volume v
                     LEFT JOIN LATERAL (SELECT s.at, s.size_gib FROM broker_volumesizechange s
                                         WHERE s.volume_id = v.id ORDER BY s.seq DESC LIMIT 1) last ON true
                    WHERE v.tenant_id = p.tenant_id AND v.used_at < upper(p.span)
                      AND CASE WHEN v.state = 'ready' THEN last.at IS NULL OR last.at < upper(p.span)
                               ELSE last.size_gib > 0 END)
