SELECT a.currency FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
 GROUP BY a.currency
HAVING sum(CASE WHEN a.type IN ('wallet_paid', 'wallet_promo', 'revenue', 'tax_payable', 'breakage')
                THEN -b.minor ELSE b.minor END) <> 0
    OR bool_or(a.type = 'accrued' AND b.minor <> 0)
