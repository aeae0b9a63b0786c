SELECT l.id FROM broker_lease l LEFT JOIN broker_allocation a
    ON a.lease_id = l.id AND a.generation = l.generation AND a.released_at IS NULL
 WHERE l.state IN ('provisioning', 'active', 'stopping', 'releasing', 'failed')
 GROUP BY l.id HAVING count(a.id) <> l.quantity
