-- Derive the transfers that reverse a bank receipt: each of its own, the other way round. What
-- it recovered of a write-off that was undone since stays recovered: the invoice is owed again in full.
WITH of_receipt AS (
  SELECT (r.id || ':balance') COLLATE "C" AS idem, r.reversed_at
    FROM billing_bankreceipt r WHERE r.id = ANY(%(subjects)s) AND r.reversed_at IS NOT NULL
   UNION ALL
  SELECT (p.invoice_id || ':' || p.id || leg.idem) COLLATE "C", r.reversed_at
    FROM billing_bankreceiptpart p
    JOIN billing_bankreceipt r ON r.id = p.receipt_id AND r.id = ANY(%(subjects)s) AND r.reversed_at IS NOT NULL
   CROSS JOIN (VALUES (''), (':recovered'), (':recovered_tax')) leg (idem)
   WHERE leg.idem = '' OR EXISTS (
         SELECT FROM billing_writeoff w WHERE w.invoice_id = p.invoice_id AND w.undone_at IS NULL AND w.at <= p.at)
), given AS (
  SELECT t.tenant_id, t.currency, o.reversed_at, 'reversal', t.ref, t.id, c.type, d.type, t.minor,
         (t.idem || ':reversed') COLLATE "C"
    FROM of_receipt o
    JOIN billing_ledgertransfer t ON t.idem = o.idem
    JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
    JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
)
