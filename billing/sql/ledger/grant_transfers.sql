-- Derive the transfer of a grant: an expense, and a liability until it is drawn or expires.
WITH given AS (
  SELECT g.tenant_id, g.currency, g.given_at, 'grant', g.id, NULL::bigint,
         CASE g.source WHEN 'breach' THEN 'slo_expense' ELSE 'promotion' END, 'wallet_promo:' || g.id, g.minor,
         (g.id || ':given') COLLATE "C"
    FROM billing_grant g
   WHERE g.id = ANY(%(subjects)s)
)
