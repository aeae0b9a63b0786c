SELECT i.id FROM billing_invoice i
  JOIN LATERAL (
       SELECT coalesce(sum(CASE WHEN d.type = 'receivable' THEN t.minor ELSE 0 END
                           - CASE WHEN c.type = 'receivable' THEN t.minor ELSE 0 END), 0) AS minor
         FROM billing_ledgertransfer t
         JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
         JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
        WHERE t.idem > (i.id || ':') COLLATE "C" AND t.idem < (i.id || ';') COLLATE "C") owed ON true
 WHERE i.id IN (SELECT l.ref FROM billing_ledgertransfer l
                 WHERE l.recorded_at > %(now)s::timestamptz - interval '2 days')
   AND owed.minor <> CASE WHEN i.status IN ('finalized', 'partially_paid') THEN i.total - i.settled - i.received
                          ELSE 0 END
