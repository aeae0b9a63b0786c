-- List invoices that left a balance on a clearing account.
WITH through AS (SELECT id FROM billing_ledgeraccount WHERE type = 'accrued')
SELECT t.ref
  FROM billing_ledgertransfer t
  LEFT JOIN through d ON d.id = t.debit_account_id
  LEFT JOIN through c ON c.id = t.credit_account_id
 WHERE d.id IS NOT NULL OR c.id IS NOT NULL
 GROUP BY t.ref
HAVING sum(CASE WHEN d.id IS NOT NULL THEN t.minor ELSE 0 END - CASE WHEN c.id IS NOT NULL THEN t.minor ELSE 0 END) <> 0
 ORDER BY 1
