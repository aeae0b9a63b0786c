SELECT EXISTS (
  SELECT FROM broker_occupied o JOIN broker_gpu g ON g.id = o.gpu_id WHERE g.node_id = %(node)s AND NOT o.mine)
