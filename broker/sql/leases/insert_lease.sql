-- The two transitions are chained to each other, and both to the lease, by deferred constraints.
WITH lease AS (
  INSERT INTO broker_lease (id, tenant_id, project_id, offering_id, name, quantity, cpu_milli, host_memory_mib,
         scratch_mib, same_node, topology, image, command, tags, workload, env, secrets, pull_secret,
         launch_template, ssh_keys, volume_id, relocatable, spot_notice_s, spot_min_runtime_s,
         requeue_when_preempted, checkpoint_command, quote_id, state, seq,
         state_since, generation, conditions, progress, pending_reason, created_at, end_reason, max_duration_s,
         end_date, quota_uses, requested_by, requested_by_label, due_at, unfinished_claims, version, extend_by_s,
         extend_limit_s, extend_with_token, notify_on_end, starts_at, requeued_at, retries, attempt_limit_s, array_id,
         array_index)
  VALUES (%(id)s, %(tenant_id)s, %(project_id)s, %(offering_id)s, %(name)s, %(quantity)s, %(cpu_milli)s,
         %(host_memory_mib)s, %(scratch_mib)s, %(same_node)s, %(topology)s, %(image)s, %(command)s, %(tags)s,
         %(workload)s, %(env)s, %(secrets)s, %(pull_secret)s, %(launch_template)s, %(ssh_keys)s, %(volume_id)s,
         %(relocatable)s, %(spot_notice_s)s, %(spot_min_runtime_s)s, %(requeue_when_preempted)s,
         %(checkpoint_command)s, %(quote_id)s, 'queued', 1,
         %(state_since)s, 1, '{}', '{}', %(pending_reason)s, %(created_at)s, 'none', %(max_duration_s)s,
         %(end_date)s, %(quota_uses)s, %(requested_by)s, %(requested_by_label)s, %(end_date)s, 0, 1, %(extend_by_s)s,
         %(extend_limit_s)s, %(extend_with_token)s, %(notify_on_end)s, %(starts_at)s, %(requeued_at)s, %(retries)s,
         %(attempt_limit_s)s, %(array_id)s, %(array_index)s)
)
INSERT INTO broker_transition (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause,
       offering_id, project_id, quantity, price_class, generation, actor_kind, actor_id, actor_label)
SELECT %(id)s, step.seq, %(tenant_id)s, %(state_since)s::timestamptz, step.prev_seq, step.prev_at, step.before, step.after,
       'none', step.cause, %(offering_id)s, %(project_id)s, %(quantity)s::int, %(price_class)s, 1, %(actor_kind)s, %(requested_by)s,
       %(requested_by_label)s
  FROM (VALUES (0, NULL::int, NULL::timestamptz, '', 'requested', 'requested'),
               (1, 0, %(state_since)s::timestamptz, 'requested', 'queued', 'checks passed'))
       AS step(seq, prev_seq, prev_at, before, after, cause)
 ORDER BY step.seq
