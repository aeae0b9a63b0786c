-- Make draft invoices final, each with its number in the month's series.
UPDATE billing_invoice i
   SET status = 'finalized', series = %(series)s, number = f.number, finalized_at = %(now)s, due_at = %(due_at)s,
       supplier = %(supplier)s::jsonb, bank_account = %(bank_account)s::jsonb, customer = f.customer,
       po_number = f.po_number, disputable_until = f.until, collected = %(collected)s
  FROM jsonb_to_recordset(%(final)s::jsonb) AS f (id text, number int, customer jsonb, po_number text, until timestamptz)
 WHERE i.id = f.id AND i.status = 'draft'
