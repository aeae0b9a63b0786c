-- List intervals of closed months whose seconds are on a later month's invoice.
SELECT DISTINCT lease_id, seq, period_id
  FROM billing_ratedcharge
 WHERE billed_period_id = %(period)s AND period_id <> billed_period_id AND correction_id = ''
