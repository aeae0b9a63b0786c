-- Recompute each account's balance from its transfers, beside the stored one. It reads the transfers once: pairs of
-- accounts are few, however many transfers there are between them.
WITH pair AS (
  SELECT debit_account_id, credit_account_id, sum(minor) AS minor
    FROM billing_ledgertransfer GROUP BY debit_account_id, credit_account_id
), net AS (
  SELECT account_id, sum(minor) AS minor
    FROM (SELECT debit_account_id AS account_id, minor FROM pair
           UNION ALL
          SELECT credit_account_id, -minor FROM pair) leg
   GROUP BY account_id
)
SELECT a.id, a.tenant_id, a.type, a.currency, coalesce(net.minor, 0)::bigint AS debits_less_credits, b.minor AS kept
  FROM billing_ledgeraccount a
  LEFT JOIN billing_accountbalance b ON b.account_id = a.id
  FULL JOIN net ON net.account_id = a.id
