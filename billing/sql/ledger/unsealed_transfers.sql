-- List transfers that no seal covers yet, in the order of each tenant's chain. The search starts a while before the
-- latest seal, because a transaction may commit later than it wrote.
WITH since AS (SELECT coalesce(max(sealed_at) - interval '7 days', '-infinity') AS at FROM billing_ledgerseal)
SELECT t.id, t.tenant_id, t.debit_account_id, t.credit_account_id, t.currency, t.minor, t.at, t.kind, t.ref,
       t.reverses_id, t.idem, t.recorded_at
  FROM billing_ledgertransfer t
  LEFT JOIN (SELECT unnest(s.transfers) AS id FROM billing_ledgerseal s
              WHERE s.sealed_at >= (SELECT at FROM since)) sealed ON sealed.id = t.id
 WHERE t.recorded_at >= (SELECT at FROM since) AND t.recorded_at < %(until)s AND sealed.id IS NULL
 ORDER BY t.tenant_id, t.recorded_at, t.id
 LIMIT %(most)s
