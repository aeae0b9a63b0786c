-- A lease that ended beside a relocatable one may leave a GPU that can be emptied. After an operator declined, no plan
-- proposed for such an occasion until the window has passed.
SELECT DISTINCT c.id
  FROM broker_lease l JOIN broker_allocation a ON a.lease_id = l.id AND a.released_at IS NULL
  JOIN broker_gpu g ON g.id = a.gpu_id JOIN broker_node n ON n.id = g.node_id
  JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE l.state = 'active' AND l.relocatable AND (%(anyway)s OR EXISTS (
         SELECT FROM broker_lease q JOIN broker_offering o ON o.id = q.offering_id
          WHERE q.state = 'queued' AND q.pending_reason <> '' AND o.gpu_model_id = g.gpu_model_id AND o.region = c.region)
   OR EXISTS (SELECT FROM broker_allocation r WHERE r.gpu_id = g.id AND r.released_at > %(lately)s)
      AND NOT EXISTS (
         SELECT FROM broker_relocationlogentry e JOIN broker_relocationplan p ON p.id = e.plan_id
          WHERE p.cluster_id = c.id AND p.gpu_model_id = g.gpu_model_id
            AND e.state = 'declined' AND e.actor_label <> '' AND e.at > %(declined)s))
 ORDER BY c.id
