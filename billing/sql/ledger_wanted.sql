-- What shall stand in the books, whatever is negative the other way round; nothing is no transfer. A side is named by the
-- type of its account, or by `type:ref` where something has an account of its own, as each grant has.
SELECT tenant_id, currency, at, kind, ref, reverses_id, abs(minor) AS minor, idem,
       split_part(debit, ':', 1) AS debit, split_part(debit, ':', 2) AS debit_ref,
       split_part(credit, ':', 1) AS credit, split_part(credit, ':', 2) AS credit_ref
  FROM (SELECT tenant_id, currency, at, kind, ref, reverses_id, minor, idem,
               CASE WHEN minor > 0 THEN debit ELSE credit END AS debit,
               CASE WHEN minor > 0 THEN credit ELSE debit END AS credit
          FROM (/*rows*/) w (tenant_id, currency, at, kind, ref, reverses_id, debit, credit, minor, idem)
         WHERE minor <> 0) side
