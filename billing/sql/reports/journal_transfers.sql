-- List the transfers of a time by event, with the number of their document and how its invoice is taxed.
SELECT t.id, t.tenant_id, n.name, d.type, c.type, t.currency, t.minor, t.at, t.kind,
       CASE WHEN r.number IS NOT NULL THEN r.series || '-' || lpad(r.number::text, greatest(4, length(r.number::text)), '0')
            WHEN i.number IS NOT NULL THEN i.series || '-' || lpad(i.number::text, greatest(4, length(i.number::text)), '0')
            ELSE t.ref END,
       coalesce(i.treatment, ''),
       t.kind || ':' || t.ref || ':' || CASE WHEN split_part(t.idem, ':', 2) LIKE '%%\_%%' THEN split_part(t.idem, ':', 2) ELSE '' END AS event
  FROM billing_ledgertransfer t
  JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
  JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
  JOIN tenants_tenant n ON n.id = t.tenant_id
  LEFT JOIN billing_invoice i ON i.id = t.ref
  LEFT JOIN billing_creditnote r ON r.id = split_part(t.idem, ':', 2)
 WHERE t.at >= %(since)s AND t.at < %(until)s AND (%(tenant)s = '' OR t.tenant_id = %(tenant)s)
 ORDER BY t.at, min(t.id) OVER (PARTITION BY t.kind, t.ref, split_part(t.idem, ':', 2) LIKE '%%\_%%',
                                  CASE WHEN split_part(t.idem, ':', 2) LIKE '%%\_%%' THEN split_part(t.idem, ':', 2) END),
          t.id
