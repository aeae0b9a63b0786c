-- What a grant is in the books: given away, and owed as service until it is drawn or ends.
SELECT g.tenant_id, g.currency, g.given_at, 'grant', g.id, NULL::bigint,
       CASE g.source WHEN 'breach' THEN 'slo_expense' ELSE 'promotion' END, 'wallet_promo:' || g.id, g.minor,
       (g.id || ':given') COLLATE "C"
  FROM billing_grant g
 WHERE g.id = ANY(%(subjects)s)
