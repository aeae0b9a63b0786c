-- Post the transfers that do not exist yet: all, or none while an account is missing. A trigger updates the balances.
, leg AS MATERIALIZED (  -- an account by its whole key, the tenant's or the platform's, which no type has both of
  SELECT wanted.*, coalesce(d.id, pd.id) AS debit_id, coalesce(c.id, pc.id) AS credit_id
    FROM wanted
    LEFT JOIN billing_ledgeraccount d ON (d.tenant_id, d.type, d.currency, d.ref)
                                       = (wanted.tenant_id, wanted.debit, wanted.currency, wanted.debit_ref)
    LEFT JOIN billing_ledgeraccount pd ON pd.tenant_id IS NULL AND (pd.type, pd.currency, pd.ref)
                                        = (wanted.debit, wanted.currency, wanted.debit_ref)
    LEFT JOIN billing_ledgeraccount c ON (c.tenant_id, c.type, c.currency, c.ref)
                                       = (wanted.tenant_id, wanted.credit, wanted.currency, wanted.credit_ref)
    LEFT JOIN billing_ledgeraccount pc ON pc.tenant_id IS NULL AND (pc.type, pc.currency, pc.ref)
                                        = (wanted.credit, wanted.currency, wanted.credit_ref)
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
