SELECT extract(epoch FROM ready.at - lease.created_at)::int
  FROM broker_transition ready JOIN broker_lease lease ON lease.id = ready.lease_id
 WHERE ready.tenant_id = %(tenant)s AND ready.before = 'provisioning' AND ready.after = 'active'
   AND ready.offering_id = %(offering)s AND ready.prev_at - lease.created_at < interval '5 seconds'
 ORDER BY ready.xid DESC, ready.position DESC LIMIT %(most)s
