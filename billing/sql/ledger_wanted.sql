-- What shall stand in the books, whatever is negative the other way round; nothing is no transfer.
SELECT tenant_id, currency, at, kind, ref, reverses_id, abs(minor) AS minor, idem,
       CASE WHEN minor > 0 THEN debit ELSE credit END AS debit,
       CASE WHEN minor > 0 THEN credit ELSE debit END AS credit
  FROM (/*rows*/) w (tenant_id, currency, at, kind, ref, reverses_id, debit, credit, minor, idem)
 WHERE minor <> 0
