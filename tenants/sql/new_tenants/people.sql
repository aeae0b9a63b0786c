-- People who founded a tenant or can launch in it, by their mailboxes; and the network it was founded from.
SELECT t.founder, false FROM tenants_tenant t WHERE t.id = %(tenant)s AND t.founder <> ''
UNION
SELECT u.mailbox, false
  FROM tenants_member m JOIN tenants_user u ON u.id = m.user_id
 WHERE m.tenant_id = %(tenant)s AND m.role = ANY(%(roles)s) AND u.mailbox <> ''
UNION
SELECT t.founder_network, true FROM tenants_tenant t WHERE t.id = %(tenant)s AND t.founder_network <> ''
 ORDER BY 2, 1
