-- The changes of a lease's state that its log has no line for yet.
SELECT seq, at, before, after, reason, cause
  FROM broker_transition
 WHERE lease_id = %(lease)s AND seq > %(seq)s
 ORDER BY seq
