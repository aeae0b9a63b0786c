-- Normalise requested transfers: a negative amount swaps the sides, and zero is no transfer. A side is named by its
-- account type, or by `type:ref` where a thing has an account of its own, as each grant has.
, wanted AS MATERIALIZED (
  SELECT tenant_id, currency, at, kind, ref, reverses_id, abs(minor) AS minor, idem,
         split_part(debit, ':', 1) AS debit, split_part(debit, ':', 2) AS debit_ref,
         split_part(credit, ':', 1) AS credit, split_part(credit, ':', 2) AS credit_ref
    FROM (SELECT tenant_id, currency, at, kind, ref, reverses_id, minor, idem,
                 CASE WHEN minor > 0 THEN debit ELSE credit END AS debit,
                 CASE WHEN minor > 0 THEN credit ELSE debit END AS credit
            FROM given w (tenant_id, currency, at, kind, ref, reverses_id, debit, credit, minor, idem)
           WHERE minor <> 0) side
)
