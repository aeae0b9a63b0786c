-- What was left of a grant when it ended is in the books: owed to nobody any longer.
SELECT l.tenant_id, g.currency, l.at, 'lapse', g.id, NULL::bigint, 'wallet_promo:' || g.id, 'breakage', l.minor,
       (g.id || ':lapsed') COLLATE "C"
  FROM billing_grantlapse l JOIN billing_grant g ON g.id = l.grant_id
 WHERE l.grant_id = ANY(%(subjects)s)
