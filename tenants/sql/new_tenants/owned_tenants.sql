-- New tenants that a person has: founded by their mailbox, or owned by one of its accounts.
SELECT count(*)
  FROM tenants_tenant t
 WHERE t.released_at IS NULL
   AND (t.founder = %(mailbox)s
        OR EXISTS (SELECT FROM tenants_member m JOIN tenants_user u ON u.id = m.user_id
                    WHERE m.tenant_id = t.id AND m.role = 'owner' AND m.project_id IS NULL
                      AND u.mailbox = %(mailbox)s AND u.mailbox <> ''))
