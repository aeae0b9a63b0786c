-- Derive the transfers of bank receipts: what they paid of invoices at once, what was assigned from the balance since,
-- and their rest, which is on the balance. Money for an invoice that was written off makes the loss smaller, and its
-- tax is owed again.
WITH part AS (
  SELECT p.*, r.currency FROM billing_bankreceiptpart p JOIN billing_bankreceipt r ON r.id = p.receipt_id
   WHERE r.id = ANY(%(subjects)s)
), given AS (
  SELECT tenant_id, currency, at, 'receipt', invoice_id, NULL::bigint,
         CASE WHEN from_balance THEN 'wallet_paid' ELSE 'bank' END, 'receivable', minor,
         (invoice_id || ':' || id) COLLATE "C"
    FROM part
   UNION ALL
  SELECT tenant_id, currency, at, 'receipt', invoice_id, NULL::bigint, 'receivable', 'bad_debt',
         minor - recovered_tax, (invoice_id || ':' || id || ':recovered') COLLATE "C"
    FROM part WHERE recovered
   UNION ALL
  SELECT tenant_id, currency, at, 'receipt', invoice_id, NULL::bigint, 'receivable', 'tax_payable', recovered_tax,
         (invoice_id || ':' || id || ':recovered_tax') COLLATE "C"
    FROM part WHERE recovered
   UNION ALL
  SELECT r.tenant_id, r.currency, r.recorded_at, 'receipt', r.id, NULL::bigint, 'bank', 'wallet_paid',
         r.minor - coalesce((SELECT sum(p.minor) FROM part p WHERE p.receipt_id = r.id AND NOT p.from_balance), 0),
         (r.id || ':balance') COLLATE "C"
    FROM billing_bankreceipt r WHERE r.id = ANY(%(subjects)s)
)
