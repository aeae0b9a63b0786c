-- One query on the request path: whether a budget applies, when one of them ends everything, whether a capped token requests
-- or has requested the lease, and the tenant's payment terms and account status.
SELECT EXISTS (SELECT FROM billing_budget WHERE project_id = ANY(%(path)s::text[])),
       (SELECT min(s.due_at)
          FROM billing_budget b JOIN billing_budgetstop s ON s.budget_id = b.id
          JOIN billing_billingperiod p ON p.id = s.period_id
         WHERE b.project_id = ANY(%(path)s::text[]) AND s.what = 'all' AND s.lifted_at IS NULL
           AND p.span @> %(now)s::timestamptz),
       EXISTS (SELECT FROM billing_tokencap WHERE token_id = %(token)s),
       EXISTS (SELECT FROM billing_tokencaplease WHERE lease_id = %(lease)s),
       t.payment, t.account_status, t.why
  FROM (SELECT) one LEFT JOIN billing_accountterms t ON t.tenant_id = %(tenant)s
