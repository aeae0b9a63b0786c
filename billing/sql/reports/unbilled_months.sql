-- List months that had ended by a time while their invoice was not final then, and open months up to now.
SELECT i.tenant_id, n.name, p.label, i.id,
       CASE WHEN i.number IS NULL THEN '' ELSE i.series || '-' || lpad(i.number::text, greatest(4, length(i.number::text)), '0') END,
       i.finalized_at, i.currency, i.total - i.tax
  FROM billing_invoice i
  JOIN billing_billingperiod p ON p.id = i.period_id
  JOIN tenants_tenant n ON n.id = i.tenant_id
 WHERE lower(p.span) < %(at)s AND (i.finalized_at IS NULL OR i.finalized_at >= %(at)s) AND i.status NOT IN ('void', 'reported')
   AND (%(tenant)s = '' OR i.tenant_id = %(tenant)s) AND i.total <> i.tax
 ORDER BY n.name, i.tenant_id, p.label
