-- Derive the transfers of a voided invoice: the reverse of those made when it became final. Where a credit note
-- cancelled it, that note did so.
WITH given AS (
  SELECT t.tenant_id, t.currency, %(now)s::timestamptz, 'void', t.ref, t.id, c.type, d.type, t.minor,
         (t.idem || ':void') COLLATE "C"
    FROM billing_invoice i
    JOIN billing_ledgertransfer t
      ON t.idem > (i.id || ':') COLLATE "C" AND t.idem < (i.id || ';') COLLATE "C" AND t.kind = 'invoice'
    JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
    JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
   WHERE i.id = ANY(%(subjects)s) AND i.status = 'void'
     AND NOT EXISTS (SELECT FROM billing_creditnote n WHERE n.invoice_id = i.id)
)
