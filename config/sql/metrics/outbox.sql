-- Count unsent messages, those of them that are due, and the age of the oldest of these. Most of the others are checks of
-- active leases that have their time still to come.
SELECT count(*), count(*) FILTER (WHERE at <= clock_timestamp()),
       coalesce(extract(epoch FROM clock_timestamp() - min(at) FILTER (WHERE at <= clock_timestamp())), 0)::float
  FROM ports_outboxmessage
