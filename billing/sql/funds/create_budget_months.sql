-- Create the missing months of budgets, from the root down; none that ended before its budget was set.
INSERT INTO billing_budgetmonth (tenant_id, budget_id, period_id, base_num, taken_num, spent_num)
SELECT b.tenant_id, b.id, p.id, 0, 0, 0
  FROM billing_budget b
  JOIN tenants_project j ON j.id = b.project_id
  JOIN billing_billingperiod p ON p.tenant_id = b.tenant_id AND p.id = ANY(%(months)s::bigint[])
 WHERE b.project_id = ANY(%(projects)s::text[]) AND upper(p.span) > b.made_at
   AND NOT EXISTS (SELECT FROM billing_budgetmonth m
                    WHERE m.tenant_id = b.tenant_id AND m.budget_id = b.id AND m.period_id = p.id)
 ORDER BY cardinality(j.path), p.span
    ON CONFLICT (tenant_id, budget_id, period_id) DO NOTHING
