SELECT m.budget_id FROM billing_budgetmonth m
  LEFT JOIN LATERAL (
       SELECT coalesce(sum(h.num), 0) AS taken, coalesce(sum(h.spent_num), 0) AS spent
         FROM billing_holdpart h WHERE h.month_id = m.id) parts ON true
  JOIN billing_billingperiod p ON p.id = m.period_id
 WHERE p.span @> %(now)s::timestamptz
   AND (m.taken_num, m.spent_num) <> (m.base_num + parts.taken, m.base_num + parts.spent)
 UNION ALL
SELECT o.lease_id FROM billing_hold o JOIN billing_holdpart h ON h.hold_id = o.id
  JOIN billing_budgetmonth m ON m.id = h.month_id
  JOIN LATERAL (
       SELECT coalesce(sum(c.exact_num), 0) AS num FROM billing_ratedcharge c
        WHERE c.lease_id = o.lease_id AND c.period_id = m.period_id AND c.correction_id = '') charged ON true
 WHERE o.settled_at > %(now)s::timestamptz - interval '2 days'
   AND (h.num <> charged.num OR h.spent_num <> charged.num)
