-- Open whatever account is wanted and not there yet.
WITH wanted AS (/*wanted*/),
asked AS (
  SELECT tenant_id, debit AS type, currency FROM wanted UNION SELECT tenant_id, credit, currency FROM wanted
), opened AS (
  INSERT INTO billing_ledgeraccount (tenant_id, type, currency, opened_at)
  SELECT tenant_id, type, currency, %(now)s FROM asked WHERE type = ANY(%(theirs)s) ORDER BY 1, 2, 3
      ON CONFLICT DO NOTHING
)
SELECT open_platform_account(type, currency::text, %(now)s)
  FROM (SELECT DISTINCT type, currency FROM asked WHERE type <> ALL(%(theirs)s) ORDER BY 1, 2) ours
