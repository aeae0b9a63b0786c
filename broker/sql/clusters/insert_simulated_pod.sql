-- Create the pod or return the existing one, in one round trip.
INSERT INTO broker_simulatedpod (name, nodes, created_at, ready_at, refused, slow)
VALUES (%(name)s, %(nodes)s, %(created_at)s, %(ready_at)s, %(refused)s, %(slow)s)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING *
