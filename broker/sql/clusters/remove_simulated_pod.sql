-- Begin the removal of a pod, if it has not begun; return when it is gone, and a lost node that cannot confirm it.
WITH pod AS (
  UPDATE broker_simulatedpod
     SET gone_at = COALESCE(gone_at, %(now)s::timestamptz + CASE WHEN slow THEN %(slow)s ELSE %(usual)s END)
   WHERE name = %(name)s
  RETURNING gone_at, nodes
)
SELECT pod.gone_at, lost.name, lost.state_since
  FROM pod LEFT JOIN LATERAL (
    SELECT node.name, node.state_since
      FROM broker_node node
     WHERE node.id IN (SELECT jsonb_array_elements_text(pod.nodes)) AND node.state = %(lost)s
     ORDER BY node.id LIMIT 1
  ) lost ON true
