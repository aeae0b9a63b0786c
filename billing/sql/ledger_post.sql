-- Post what is not in the books yet: all of it, or nothing while an account is missing. Balances follow by a trigger.
WITH wanted AS MATERIALIZED (/*wanted*/),
leg AS MATERIALIZED (
  SELECT wanted.*, d.id AS debit_id, c.id AS credit_id
    FROM wanted
    LEFT JOIN billing_ledgeraccount d
      ON d.type = wanted.debit AND d.currency = wanted.currency AND d.ref = wanted.debit_ref
     AND coalesce(d.tenant_id, '') = CASE WHEN wanted.debit = ANY(%(theirs)s) THEN wanted.tenant_id ELSE '' END
    LEFT JOIN billing_ledgeraccount c
      ON c.type = wanted.credit AND c.currency = wanted.currency AND c.ref = wanted.credit_ref
     AND coalesce(c.tenant_id, '') = CASE WHEN wanted.credit = ANY(%(theirs)s) THEN wanted.tenant_id ELSE '' END
), missing AS MATERIALIZED (
  SELECT count(*) AS accounts FROM leg WHERE debit_id IS NULL OR credit_id IS NULL
), written AS (
  INSERT INTO billing_ledgertransfer
         (tenant_id, debit_account_id, credit_account_id, currency, minor, at, kind, ref, reverses_id, idem)
  SELECT tenant_id, debit_id, credit_id, currency, minor, at, kind, ref, reverses_id, idem
    FROM leg WHERE (SELECT accounts FROM missing) = 0 ORDER BY idem
      ON CONFLICT (idem) DO NOTHING
  RETURNING 1
)
SELECT (SELECT count(*) FROM wanted), (SELECT accounts FROM missing), (SELECT count(*) FROM written)
