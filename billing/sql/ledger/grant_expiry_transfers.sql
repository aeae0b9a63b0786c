-- Derive the transfer of an expired grant: its remainder is owed to nobody any longer.
WITH given AS (
  SELECT l.tenant_id, g.currency, l.at, 'lapse', g.id, NULL::bigint, 'wallet_promo:' || g.id, 'breakage', l.minor,
         (g.id || ':lapsed') COLLATE "C"
    FROM billing_grantexpiry l JOIN billing_grant g ON g.id = l.grant_id
   WHERE l.grant_id = ANY(%(subjects)s)
)
