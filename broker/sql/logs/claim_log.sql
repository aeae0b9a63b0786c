-- Claim a log and return it, in one statement; a due log only where nobody else is collecting it.
UPDATE broker_leaselog
   SET claimed_until = %(until)s, claims = claims + 1
 WHERE lease_id = %(lease)s
   AND (NOT %(due_only)s::boolean
        OR (due_at <= %(now)s AND (claimed_until IS NULL OR claimed_until < %(now)s)))
RETURNING *
