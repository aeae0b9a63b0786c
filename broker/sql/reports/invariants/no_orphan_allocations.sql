SELECT a.id FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
 WHERE a.released_at IS NULL AND a.leaving_since IS NULL
   AND (l.state NOT IN ('provisioning', 'active', 'stopping', 'releasing', 'failed')
        OR a.generation <> l.generation AND NOT (a.is_relocation AND EXISTS (
             SELECT FROM broker_relocation m WHERE m.lease_id = l.id AND m.state = 'moving')))
