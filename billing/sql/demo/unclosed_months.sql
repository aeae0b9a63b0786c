SELECT DISTINCT coalesce(nullif(p.blocked_reason, ''), p.label || ' was not closed')
  FROM billing_invoice i JOIN billing_billingperiod p ON p.id = i.period_id WHERE i.status = 'draft' ORDER BY 1
