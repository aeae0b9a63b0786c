-- Open the accounts that are needed and do not exist.
, needed AS (
  SELECT tenant_id, debit AS type, currency, debit_ref AS ref FROM wanted
   UNION
  SELECT tenant_id, credit, currency, credit_ref FROM wanted
), opened AS (
  INSERT INTO billing_ledgeraccount (tenant_id, type, currency, ref, opened_at)
  SELECT tenant_id, type, currency, ref, %(now)s FROM needed WHERE type = ANY(%(theirs)s) ORDER BY 1, 2, 3, 4
      ON CONFLICT DO NOTHING
)
SELECT open_platform_account(type, currency::text, %(now)s)
  FROM (SELECT DISTINCT type, currency FROM needed WHERE type <> ALL(%(theirs)s) ORDER BY 1, 2) ours
