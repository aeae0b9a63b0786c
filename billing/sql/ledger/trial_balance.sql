-- Sum the stored balances of all accounts of a type: debits less credits, by currency.
SELECT a.currency, a.type, count(*),
       sum(CASE WHEN a.type = ANY(%(by_credit)s) THEN -b.minor ELSE b.minor END)::bigint
  FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
 GROUP BY a.currency, a.type
