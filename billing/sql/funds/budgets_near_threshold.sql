-- What is held of each current month, and the lowest share of each kind that was not announced. Spent and forecast amounts
-- never exceed what is held: a budget that holds less than its next share needs no closer check.
SELECT b.tenant_id, b.checked_at, b.limit_minor, b.currency, m.taken_num,
       (SELECT min(w.percent) FROM
          (SELECT 'spent' AS measure, unnest(b.thresholds) AS percent
            UNION ALL SELECT 'forecast', unnest(b.forecast_thresholds)) w
         WHERE NOT EXISTS (SELECT FROM billing_budgetalert a
                            WHERE a.budget_id = b.id AND a.period_id = m.period_id AND a.lifted_at IS NULL
                              AND a.measure = w.measure AND a.percent = w.percent)),
       (SELECT min(w.percent) FROM (VALUES ('idle', b.stop_idle_at), ('all', b.stop_all_at)) w (what, percent)
         WHERE w.percent IS NOT NULL
           AND NOT EXISTS (SELECT FROM billing_budgetstop s
                            WHERE s.budget_id = b.id AND s.period_id = m.period_id AND s.lifted_at IS NULL
                              AND s.what = w.what))
  FROM billing_budget b
  JOIN billing_budgetmonth m ON m.budget_id = b.id AND m.taken_num > 0
  JOIN billing_billingperiod p ON p.id = m.period_id AND p.span @> %(now)s::timestamptz
