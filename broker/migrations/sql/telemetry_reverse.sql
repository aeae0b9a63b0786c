DROP AGGREGATE weighted_mean(bigint, bigint);
DROP FUNCTION finish_weighted(bigint[]);
DROP FUNCTION add_weighted(bigint[], bigint, bigint);
DROP FUNCTION drop_telemetry_partitions(text, date);
DROP FUNCTION create_telemetry_partition(text, date);
DROP TABLE broker_gpuhour;
DROP TABLE broker_gpuminute;
DROP TABLE broker_gpusample;
