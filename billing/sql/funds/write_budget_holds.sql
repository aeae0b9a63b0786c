-- Write what leases hold of budget months, replacing existing rows.
INSERT INTO billing_holdpart (tenant_id, hold_id, month_id, num, spent_num)
SELECT %(tenant)s, *
  FROM unnest(%(holds)s::text[], %(months)s::bigint[], %(nums)s::numeric[], %(spent)s::numeric[])
    ON CONFLICT (tenant_id, hold_id, month_id) DO UPDATE SET num = excluded.num, spent_num = excluded.spent_num
