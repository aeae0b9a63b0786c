SELECT grant_id FROM (
       SELECT id AS grant_id, minor FROM billing_grant
        UNION ALL
       SELECT grant_id, -minor FROM billing_grantdraw
        UNION ALL
       SELECT grant_id, minor FROM billing_grantreturn WHERE NOT lapsed
        UNION ALL
       SELECT grant_id, -minor FROM billing_grantexpiry
        UNION ALL
       SELECT a.ref, -b.minor
         FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
        WHERE a.type = 'wallet_promo') moved
 GROUP BY grant_id HAVING sum(minor) <> 0
