-- Read through a view that reveals the owner of a placement only to its own tenant.
SELECT gpu_id, profile, isolation, start, mine FROM broker_occupied WHERE gpu_id = ANY(%(gpus)s) ORDER BY gpu_id, start
