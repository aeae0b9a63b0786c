-- Derive the transfer of an expired grant: its remainder is owed to nobody any longer. If it was taken back, it is no
-- expense either.
WITH given AS (
  SELECT l.tenant_id, g.currency, l.at, 'lapse', g.id, NULL::bigint, 'wallet_promo:' || g.id,
         CASE WHEN l.revoked_by = '' THEN 'breakage' WHEN g.source = 'breach' THEN 'slo_expense' ELSE 'promotion' END, l.minor,
         (g.id || ':lapsed') COLLATE "C"
    FROM billing_grantexpiry l JOIN billing_grant g ON g.id = l.grant_id
   WHERE l.grant_id = ANY(%(subjects)s)
)
