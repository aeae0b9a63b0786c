SELECT t.name, o.label, sum(l.unit_seconds)::bigint, sum(l.minor)::bigint
  FROM billing_invoiceline l JOIN billing_invoice i ON i.id = l.invoice_id
  JOIN tenants_tenant t ON t.id = l.tenant_id JOIN broker_offering o ON o.id = l.offering_id
 WHERE i.status = 'finalized' GROUP BY 1, 2 ORDER BY 1, 2
