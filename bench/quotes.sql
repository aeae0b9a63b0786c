-- Every second lease of one tenant cites a quote of the first price of its offering.
INSERT INTO billing_quote
       (id, tenant_id, lease_id, project_id, offering_id, price_version_id, currency, nano_per_hour, quantity,
        max_duration_s, hold_minor, cap_minor, made_at, expires_at, cited_at)
SELECT 'quo_' || l.n, l.tenant_id, l.id, l.project_id, l.offering_id, v.id, v.currency, v.nano_per_hour, l.quantity,
       3600, 0, 0, %(start)s, %(start)s::timestamptz + interval '10 minutes', %(start)s
  FROM (SELECT *, tenant_id || row_number() OVER (ORDER BY id) AS n, row_number() OVER (ORDER BY id) %% 2 AS odd
          FROM broker_lease) l
  JOIN billing_priceversion v ON v.offering_id = l.offering_id AND v.valid @> %(start)s::timestamptz
 WHERE l.odd = 1
