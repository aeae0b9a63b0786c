-- Lock the needed and the held months of every budget on a path at once, from the root down, and return what a lease
-- already holds of each.
SELECT m.id, m.period_id, p.label, m.taken_num, b.id, b.project_id, b.currency, b.limit_minor, b.stop_new_at,
       coalesce(part.num, 0), part.spent_num
  FROM billing_budgetmonth m
  JOIN billing_budget b ON b.id = m.budget_id
  JOIN tenants_project j ON j.id = b.project_id
  JOIN billing_billingperiod p ON p.id = m.period_id
  LEFT JOIN billing_holdpart part
    ON part.tenant_id = m.tenant_id AND part.hold_id = %(hold)s AND part.month_id = m.id
 WHERE m.id IN (SELECT w.id
                  FROM billing_budgetmonth w JOIN billing_budget on_path ON on_path.id = w.budget_id
                 WHERE on_path.project_id = ANY(%(path)s::text[]) AND w.tenant_id = on_path.tenant_id
                   AND w.period_id = ANY(%(months)s::bigint[])
                UNION
                SELECT h.month_id FROM billing_holdpart h WHERE h.tenant_id = %(tenant)s AND h.hold_id = %(hold)s)
 ORDER BY cardinality(j.path), p.span, m.id
   FOR NO KEY UPDATE OF m
