-- List transfers that have an expected reference but other contents.
SELECT wanted.idem
  FROM wanted
  LEFT JOIN (billing_ledgertransfer t
             JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
             JOIN billing_ledgeraccount c ON c.id = t.credit_account_id) ON t.idem = wanted.idem
 WHERE (t.tenant_id, t.currency, t.minor, t.ref, d.type, d.ref, c.type, c.ref)
       IS DISTINCT FROM (wanted.tenant_id, wanted.currency, wanted.minor, wanted.ref, wanted.debit, wanted.debit_ref,
                         wanted.credit, wanted.credit_ref)
 ORDER BY 1
