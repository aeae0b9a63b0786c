-- As for a new allocation, held_at is not before the release of those slices by others (triggers.sql, hold_once_free).
UPDATE broker_allocation a
   SET placement = to_be.place,
       held_at = greatest(a.held_at, (
         SELECT max(v.released_at) FROM broker_vacated v
          WHERE v.gpu_id = a.gpu_id AND v.start < upper(to_be.place) AND v.stop > lower(to_be.place)))
  FROM (SELECT int4range(%(start)s::int, %(stop)s::int) AS place) to_be
 WHERE a.id = %(allocation)s
RETURNING a.id
