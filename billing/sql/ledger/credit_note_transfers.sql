-- Derive the transfers of a credit note: revenue and tax decrease; the tenant owes less, or gets a balance; what a
-- grant had paid returns to it unless it has ended.
WITH given AS (
  SELECT n.tenant_id, n.currency, n.issued_at, 'credit', n.invoice_id, NULL::bigint, leg.debit, leg.credit, leg.minor,
         (n.invoice_id || ':' || n.id || leg.idem) COLLATE "C"
    FROM billing_creditnote n
   CROSS JOIN LATERAL (VALUES ('revenue', 'accrued', n.total - n.tax, ':subtotal'),
                              ('tax_payable', 'accrued', n.tax, ':tax'),
                              ('accrued', 'receivable', n.reduced_due, ':due'),
                              ('accrued', 'wallet_paid', n.total - n.reduced_due - n.to_grants, ':balance'))
              leg (debit, credit, minor, idem)
   WHERE n.id = ANY(%(subjects)s)
   UNION ALL
  SELECT r.tenant_id, n.currency, n.issued_at, 'credit', n.invoice_id, NULL::bigint, 'accrued',
         CASE WHEN r.lapsed THEN 'breakage' ELSE 'wallet_promo:' || r.grant_id END, r.minor,
         (n.invoice_id || ':' || n.id || ':' || r.id) COLLATE "C"
    FROM billing_grantreturn r JOIN billing_creditnote n ON n.id = r.credit_note_id
   WHERE r.credit_note_id = ANY(%(subjects)s)
)
