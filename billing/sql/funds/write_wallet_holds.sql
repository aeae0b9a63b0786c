-- Write what a lease holds of a wallet month by month, replacing existing rows, and until when that covers it.
WITH extended AS (UPDATE billing_hold SET covers_until = %(until)s WHERE id = %(hold)s)
INSERT INTO billing_walletpart (tenant_id, hold_id, wallet_id, period_id, num, spent_num)
SELECT %(tenant)s, %(hold)s, %(wallet)s::bigint, *
  FROM unnest(%(months)s::bigint[], %(nums)s::numeric[], %(spent)s::numeric[])
    ON CONFLICT (tenant_id, hold_id, period_id) DO UPDATE SET num = excluded.num, spent_num = excluded.spent_num
