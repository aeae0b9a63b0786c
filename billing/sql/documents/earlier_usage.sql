-- List leases and volumes with usage of closed months on earlier invoices, where later usage of the same month and
-- offering is on the invoice of `here`; each with its last interval charged there and the price promised to the lease.
SELECT c.lease_id, max(c.seq), max(c.meter), max(quote.price_version_id)
  FROM billing_ratedcharge c
  LEFT JOIN billing_quote quote ON quote.lease_id = c.lease_id
 WHERE c.period_id = ANY(%(months)s) AND c.billed_period_id = ANY(%(billed)s) AND c.billed_period_id <> %(here)s
   AND c.kind = 'usage' AND c.offering_id = ANY(%(offerings)s)
 GROUP BY c.lease_id
