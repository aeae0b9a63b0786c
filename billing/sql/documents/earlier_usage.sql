-- List leases and volumes with usage of closed months on earlier invoices, where later usage of the same month and
-- offering is on the invoice of `here`; each with its last interval charged there and the price promised to the lease.
-- Of refunded use, it is the last interval of the preempted run.
SELECT c.lease_id,
       max(CASE WHEN c.kind = 'adjust'
                THEN (SELECT min(t.seq) - 1 FROM broker_transition t
                       WHERE t.lease_id = c.lease_id AND t.seq > c.seq AND t.after <> 'active')
                ELSE c.seq END),
       max(c.meter), max(quote.price_version_id)
  FROM billing_ratedcharge c
  LEFT JOIN billing_quote quote ON quote.lease_id = c.lease_id
 WHERE c.period_id = ANY(%(months)s) AND c.billed_period_id = ANY(%(billed)s) AND c.billed_period_id <> %(here)s
   AND c.correction_id = '' AND c.offering_id = ANY(%(offerings)s)
 GROUP BY c.lease_id
