-- List the transfers that are in no seal.
SELECT t.id, t.tenant_id, t.recorded_at
  FROM billing_ledgertransfer t
  LEFT JOIN (SELECT unnest(transfers) AS id FROM billing_ledgerseal) sealed ON sealed.id = t.id
 WHERE sealed.id IS NULL
 ORDER BY t.id
