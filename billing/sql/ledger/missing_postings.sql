-- List events without a transfer: those written by a release that had no ledger.
SELECT i.tenant_id, 'finalized', i.id FROM billing_invoice i
 WHERE i.finalized_at IS NOT NULL AND i.total <> 0 AND i.status <> 'reported'
   AND NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (i.id || ':total') COLLATE "C")
 UNION ALL
SELECT p.tenant_id, 'paid', p.id FROM billing_payment p
 WHERE p.status = 'succeeded'
   AND NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (p.invoice_id || ':' || p.id) COLLATE "C")
 UNION ALL
SELECT d.tenant_id, 'finalized', d.invoice_id FROM billing_balancedraw d
 WHERE NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (d.invoice_id || ':' || d.id) COLLATE "C")
 UNION ALL
SELECT n.tenant_id, 'credited', n.id FROM billing_creditnote n
 WHERE NOT EXISTS (
       SELECT FROM billing_ledgertransfer t WHERE t.idem = (n.invoice_id || ':' || n.id || ':subtotal') COLLATE "C")
 UNION ALL
SELECT i.tenant_id, 'voided', i.id FROM billing_invoice i
 WHERE i.finalized_at IS NOT NULL AND i.status = 'void' AND i.total <> 0
   AND NOT EXISTS (SELECT FROM billing_creditnote n WHERE n.invoice_id = i.id)
   AND NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (i.id || ':total:void') COLLATE "C")
 UNION ALL
SELECT r.tenant_id, 'refunded', r.id FROM billing_refund r JOIN billing_payment p ON p.id = r.payment_id
 WHERE NOT EXISTS (SELECT FROM billing_ledgertransfer t WHERE t.idem = (p.invoice_id || ':' || r.id) COLLATE "C")
 UNION ALL
SELECT r.tenant_id, 'unrefunded', r.id FROM billing_refund r JOIN billing_payment p ON p.id = r.payment_id
 WHERE (r.status = 'declined' OR r.returned_at IS NOT NULL)
   AND NOT EXISTS (
       SELECT FROM billing_ledgertransfer t WHERE t.idem = (p.invoice_id || ':' || r.id || ':back') COLLATE "C")
