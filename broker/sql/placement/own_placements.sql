SELECT gpu_id, count(*) FROM broker_occupied WHERE mine GROUP BY gpu_id
