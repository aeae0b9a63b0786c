SELECT i.id FROM billing_invoice i
  LEFT JOIN LATERAL (
       SELECT sum(l.month_num) AS num, min(l.exact_num) AS least FROM billing_invoiceline l
        WHERE l.invoice_id = i.id) lines ON true
  LEFT JOIN LATERAL (
       SELECT sum(m.exact_num) AS num FROM billing_invoiceadjustment m
        WHERE m.billed_period_id = i.period_id AND m.tenant_id = i.tenant_id AND m.revision = i.revision) carried ON true
 WHERE i.finalized_at > %(now)s::timestamptz - interval '2 days' AND i.status <> 'void'
   AND (coalesce(lines.num, 0) <> coalesce(carried.num, 0) OR lines.least < 0)
