-- Derive the transfers of a final invoice: the tenant owes its total, which is revenue and tax, less what was drawn
-- from grants and from its balance.
WITH given AS (
  SELECT i.tenant_id, i.currency, i.finalized_at, 'invoice', i.id, NULL::bigint, leg.debit, leg.credit, leg.minor,
         (i.id || leg.idem) COLLATE "C"
    FROM billing_invoice i
   CROSS JOIN LATERAL (VALUES ('receivable', 'accrued', i.total, ':total'),
                              ('accrued', 'revenue', i.total - i.tax, ':subtotal'),
                              ('accrued', 'tax_payable', i.tax, ':tax')) leg (debit, credit, minor, idem)
   WHERE i.id = ANY(%(subjects)s) AND i.finalized_at IS NOT NULL
   UNION ALL
  SELECT d.tenant_id, i.currency, d.at, 'draw', i.id, NULL::bigint, 'wallet_paid', 'receivable', d.minor,
         (i.id || ':' || d.id) COLLATE "C"
    FROM billing_balancedraw d JOIN billing_invoice i ON i.id = d.invoice_id
   WHERE d.invoice_id = ANY(%(subjects)s)
   UNION ALL
  SELECT d.tenant_id, i.currency, d.at, 'draw', i.id, NULL::bigint, 'wallet_promo:' || d.grant_id, 'receivable', d.minor,
         (i.id || ':' || d.id) COLLATE "C"
    FROM billing_grantdraw d JOIN billing_invoice i ON i.id = d.invoice_id
   WHERE d.invoice_id = ANY(%(subjects)s)
)
