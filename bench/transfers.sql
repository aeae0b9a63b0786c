-- Three transfers for each of so many invoices of one tenant, into a table of the ledger's columns.
INSERT INTO /*table*/ (tenant_id, debit_account_id, credit_account_id, currency, minor, at, kind, ref, idem)
SELECT %(tenant)s, leg.debit, leg.credit, 'EUR', 100 + n, %(at)s::timestamptz + n * interval '1 second', leg.kind,
       'inv_' || lpad(n::text, 26, '0'), 'inv_' || lpad(n::text, 26, '0') || leg.name
  FROM generate_series(%(first)s::int, %(last)s::int) n
 CROSS JOIN (VALUES (%(receivable)s::bigint, %(accrued)s::bigint, 'invoice', ':total'),
                    (%(accrued)s, %(revenue)s, 'invoice', ':subtotal'),
                    (%(cash)s, %(receivable)s, 'payment', ':payment')) leg (debit, credit, kind, name)
