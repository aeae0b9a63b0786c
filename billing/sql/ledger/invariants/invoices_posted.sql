-- What an older release writes during an upgrade is posted within ten minutes (missing_postings.py).
SELECT i.id FROM billing_invoice i
 WHERE i.finalized_at BETWEEN %(now)s::timestamptz - interval '2 days'
                          AND %(now)s::timestamptz - interval '30 minutes'
   AND i.total <> 0 AND i.status <> 'reported'
   AND NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (i.id || ':total') COLLATE "C")
 UNION ALL
SELECT p.id FROM billing_payment p
 WHERE p.status = 'succeeded'
   AND p.settled_at BETWEEN %(now)s::timestamptz - interval '2 days'
                        AND %(now)s::timestamptz - interval '30 minutes'
   AND NOT EXISTS (
       SELECT FROM billing_ledgertransfer t WHERE t.idem = (p.invoice_id || ':' || p.id) COLLATE "C")
 UNION ALL
SELECT n.id FROM billing_creditnote n
 WHERE n.issued_at > %(now)s::timestamptz - interval '2 days'
   AND NOT EXISTS (SELECT FROM billing_ledgertransfer t
                    WHERE t.idem = (n.invoice_id || ':' || n.id || ':subtotal') COLLATE "C")
