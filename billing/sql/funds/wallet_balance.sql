-- Sum the paid money that may still be drawn, and the credit that admits use up to a moment. Credit restricted to a
-- project or an offering pays for use there but admits none. Nor does credit that ends before that moment or within
-- the month of the next invoice, because what it pays of past use is unknown until that invoice is final.
WITH next AS (
    SELECT upper(span) AS ends FROM billing_billingperiod
     WHERE tenant_id = %(tenant)s AND status = 'open' ORDER BY span LIMIT 1
)
SELECT (SELECT coalesce(sum(b.minor - b.held_minor), 0)::bigint
          FROM billing_accountbalance b JOIN billing_ledgeraccount a ON a.id = b.account_id
         WHERE b.tenant_id = %(tenant)s AND a.type = 'wallet_paid' AND a.currency = %(currency)s),
       (SELECT coalesce(sum(b.minor), 0)::bigint
          FROM billing_accountbalance b
          JOIN billing_ledgeraccount a ON a.id = b.account_id AND a.type = 'wallet_promo'
          JOIN billing_grant g ON g.id = a.ref AND g.tenant_id = b.tenant_id
         WHERE b.tenant_id = %(tenant)s AND b.minor > 0 AND g.currency = %(currency)s
           AND g.project_id IS NULL AND g.offering_id IS NULL
           AND (g.expires_at IS NULL
                OR g.expires_at > %(until)s
               AND g.expires_at >= coalesce((SELECT ends FROM next), %(until)s))
           AND NOT EXISTS (SELECT FROM billing_grantexpiry e WHERE e.grant_id = g.id))
