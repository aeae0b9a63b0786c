-- Claim a log that is due and that nobody else is collecting; return it.
UPDATE broker_leaselog
   SET claimed_until = %(until)s, claims = claims + 1
 WHERE lease_id = %(lease)s AND due_at <= %(now)s AND (claimed_until IS NULL OR claimed_until < %(now)s)
RETURNING *
