SELECT p.label, count(*), sum(i.total - i.tax)::bigint, sum(i.total)::bigint
  FROM billing_invoice i JOIN billing_billingperiod p ON p.id = i.period_id
 WHERE i.status = 'finalized' GROUP BY 1 ORDER BY 1
