-- Resolve which price a tenant pays for an offering, and when.

-- `card_id` is the rate card of the tenant where it has a price of the offering; the list price then fills the time
-- that is left beside it, in one part or several. A list price without such a rate card has no rate card and one part.
CREATE VIEW billing_tenantprice WITH (security_invoker = true) AS
WITH own AS (
  SELECT tenant_id, rate_card_id, offering_id, currency, range_agg(valid) AS span
    FROM billing_priceversion
   WHERE tenant_id IS NOT NULL
   GROUP BY 1, 2, 3, 4
)
SELECT v.tenant_id, v.rate_card_id AS card_id, v.id AS version_id, v.offering_id, v.currency, v.nano_per_hour, v.valid,
       0::smallint AS part
  FROM billing_priceversion v
 WHERE v.tenant_id IS NOT NULL
 UNION ALL
SELECT own.tenant_id, own.rate_card_id, v.id, v.offering_id, v.currency, v.nano_per_hour, rest.valid,
       (rest.n - 1)::smallint
  FROM own
  JOIN billing_priceversion v
    ON v.tenant_id IS NULL AND v.offering_id = own.offering_id AND v.currency = own.currency
 CROSS JOIN LATERAL unnest(tstzmultirange(v.valid) - own.span) WITH ORDINALITY AS rest(valid, n)
 UNION ALL
SELECT t.id, NULL, v.id, v.offering_id, v.currency, v.nano_per_hour, v.valid, 0::smallint
  FROM tenants_tenant t
  JOIN billing_priceversion v ON v.tenant_id IS NULL AND v.currency = t.currency
 WHERE NOT EXISTS (SELECT FROM own WHERE own.tenant_id = t.id AND own.offering_id = v.offering_id
                      AND own.currency = v.currency);
GRANT SELECT ON billing_tenantprice TO gpubroker_web, gpubroker_worker, gpubroker_staff, gpubroker_system;
