SELECT l.id FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
 WHERE l.state IN ('queued', 'provisioning', 'active')
   AND EXISTS (SELECT FROM billing_budget b WHERE b.project_id = ANY(p.path) AND NOT EXISTS (
               SELECT FROM billing_hold o JOIN billing_holdpart h ON h.hold_id = o.id
                 JOIN billing_budgetmonth m ON m.id = h.month_id
                WHERE o.lease_id = l.id AND m.budget_id = b.id))
