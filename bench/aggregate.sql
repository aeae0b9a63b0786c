-- The least that any rating must do over the same rows: join three ways and add up.
SELECT count(*), sum(extract(epoch FROM least(ended.at, upper(v.valid), upper(p.span))
                                      - greatest(begun.at, lower(v.valid), lower(p.span)))::bigint
                     * begun.quantity * v.nano_per_hour::numeric)
  FROM broker_transition ended
  JOIN broker_transition begun ON begun.lease_id = ended.lease_id AND begun.seq = ended.prev_seq
  JOIN billing_priceversion v ON v.offering_id = begun.offering_id AND v.valid && tstzrange(begun.at, ended.at)
  JOIN billing_billingperiod p ON p.tenant_id = begun.tenant_id AND p.span && (v.valid * tstzrange(begun.at, ended.at))
 WHERE ended.before = 'active' AND ended.at > begun.at
