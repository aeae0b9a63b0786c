SELECT i.number, i.tenant_id, i.total, l.n, l.unit_seconds, l.exact_num, l.minor
  FROM billing_invoice i LEFT JOIN billing_invoiceline l ON l.invoice_id = i.id ORDER BY 1, 2, 4
