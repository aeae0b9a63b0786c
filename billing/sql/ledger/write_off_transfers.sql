-- Derive the transfers of write-offs: what is not collected is a loss and no longer owed; undone, it is owed again.
WITH given AS (
  SELECT tenant_id, currency, at, 'write_off', invoice_id, NULL::bigint, 'bad_debt', 'receivable', minor,
         (invoice_id || ':' || id) COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s)
   UNION ALL
  SELECT tenant_id, currency, undone_at, 'write_off', invoice_id, NULL::bigint, 'receivable', 'bad_debt', undone_minor,
         (invoice_id || ':' || id || ':undone') COLLATE "C"
    FROM billing_writeoff WHERE id = ANY(%(subjects)s) AND undone_at IS NOT NULL
)
