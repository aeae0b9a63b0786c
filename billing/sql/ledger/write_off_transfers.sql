-- Derive the transfers of write-offs: what is not collected is a loss, less its tax, which is no longer owed to a state
-- either. Undone, both are owed again.
WITH given AS (
  SELECT tenant_id, currency, at, 'write_off', invoice_id, NULL::bigint, 'bad_debt', 'receivable',
         minor - tax, (invoice_id || ':' || id) COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s)
   UNION ALL
  SELECT tenant_id, currency, at, 'write_off', invoice_id, NULL::bigint, 'tax_payable', 'receivable', tax,
         (invoice_id || ':' || id || ':tax') COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s)
   UNION ALL
  SELECT tenant_id, currency, undone_at, 'write_off', invoice_id, NULL::bigint, 'receivable', 'bad_debt',
         undone_minor - undone_tax, (invoice_id || ':' || id || ':undone') COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s) AND undone_at IS NOT NULL
   UNION ALL
  SELECT tenant_id, currency, undone_at, 'write_off', invoice_id, NULL::bigint, 'receivable', 'tax_payable', undone_tax,
         (invoice_id || ':' || id || ':undone_tax') COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s) AND undone_at IS NOT NULL
)
