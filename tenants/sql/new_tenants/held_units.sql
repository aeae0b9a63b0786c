-- Milli-units that the new tenants of each of these people hold together, and those of a network.
WITH theirs AS (
  SELECT p.mailbox AS whose, false AS is_network, t.id
    FROM unnest(%(mailboxes)s::text[]) AS p (mailbox)
    JOIN tenants_tenant t ON t.founder = p.mailbox AND t.released_at IS NULL
   UNION
  SELECT p.mailbox, false, t.id
    FROM unnest(%(mailboxes)s::text[]) AS p (mailbox)
    JOIN tenants_user u ON u.mailbox = p.mailbox
    JOIN tenants_member m ON m.user_id = u.id AND m.role = ANY(%(roles)s)
    JOIN tenants_tenant t ON t.id = m.tenant_id AND t.released_at IS NULL
   UNION
  SELECT t.founder_network, true, t.id
    FROM tenants_tenant t
   WHERE t.founder_network = ANY(%(networks)s) AND t.released_at IS NULL
)
SELECT theirs.is_network, coalesce(sum(q.used), 0)::bigint
  FROM theirs
  JOIN tenants_project p ON p.tenant_id = theirs.id AND p.parent_id IS NULL
  JOIN tenants_quota q ON q.project_id = p.id AND q.kind = 'units'
 GROUP BY theirs.whose, theirs.is_network
