"""Leases that stop and start again: since when they wait, how long they were active before, and what that counts."""

from django.db import migrations, models

from tenants.models.walls import handed

# A lease that was started again waits since then, and not since it was asked for.
WAITING = """
SET LOCAL ROLE gpubroker_sweep;  -- only whoever owns it may drop it
DROP VIEW broker_waiting;
RESET ROLE;
CREATE VIEW broker_waiting AS
  SELECT id AS lease_id, offering_id, quantity, {since} AS created_at,
         coalesce(tenant_id = current_setting('app.tenant', true), false) AS mine
    FROM broker_lease WHERE state = 'queued';
GRANT SELECT ON broker_waiting TO gpubroker_web, gpubroker_worker, gpubroker_staff;
"""
HANDED = handed("VIEW broker_waiting", to="gpubroker_sweep")
# As in 0009, but of a lease that is over by now every stretch counts, and volumes count for quotas of room.
COUNT = """
CREATE OR REPLACE FUNCTION quota_counts_holdings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted_in text := to_char(NEW.window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"');
  held numeric;
  spent numeric := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(1, hashtext(NEW.tenant_id));
  WITH below AS MATERIALIZED (
    SELECT l.id, l.quota_uses -> NEW.kind AS use
      FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
     WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state <> 'released'
       AND l.quota_uses ? NEW.kind
     ORDER BY l.id FOR NO KEY UPDATE OF l
  ), takes AS (
    SELECT below.id, win.key, coalesce(win.value, use ->> 'amount')::bigint AS amount
      FROM below LEFT JOIN LATERAL jsonb_each_text(use -> 'windows') AS win ON true
     WHERE NEW.kind <> 'gpu_seconds' OR win.key <= counted_in
  ), parts AS (
    SELECT id, jsonb_agg(jsonb_build_array(NEW.id, amount, key) ORDER BY key) AS parts,
           sum(amount) FILTER (WHERE NEW.kind <> 'gpu_seconds' OR key = counted_in) AS amount
      FROM takes GROUP BY id
  ), told AS (
    UPDATE broker_lease l
       SET quota_uses = jsonb_set(l.quota_uses, ARRAY[NEW.kind, 'parts'],
                                  l.quota_uses -> NEW.kind -> 'parts' || parts.parts)
      FROM parts WHERE parts.id = l.id RETURNING parts.amount
  )
  SELECT coalesce(sum(amount), 0) INTO held FROM told;
  IF NEW.kind = 'gpu_seconds' THEN
    SELECT coalesce(sum(least(asked, greatest(used - earlier, 0))), 0) INTO spent FROM (
      SELECT (l.quota_uses #>> ARRAY['gpu_seconds', 'windows', counted_in])::bigint AS asked,
             (SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(l.quota_uses #> '{gpu_seconds,windows}')
               WHERE key < counted_in) AS earlier,
             (l.spent_s
               + coalesce(floor(extract(epoch FROM l.ended_at - date_trunc('second', l.active_at)))::bigint, 0))
               * l.quantity * o.milli_units AS used
        FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
        JOIN broker_offering o ON o.id = l.offering_id
       WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state = 'released'
         AND l.ended_at >= NEW.window_start
         AND (l.active_at IS NOT NULL OR l.spent_s > 0)) over_by_now;
  END IF;
  IF NEW.kind = 'storage' THEN
    SELECT coalesce(sum(v.size_gib), 0) INTO held FROM broker_volume v JOIN tenants_project p ON p.id = v.project_id
     WHERE v.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND v.state <> 'deleted';
  END IF;
  NEW.used := NEW.used + held + spent;
  NEW."limit" := greatest(NEW."limit", NEW.used);  -- grants are tested against soft_limit, which stays
  RETURN NEW;
END $$;
"""
BEFORE = """
CREATE OR REPLACE FUNCTION quota_counts_holdings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted_in text := to_char(NEW.window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"');
  held numeric;
  spent numeric := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(1, hashtext(NEW.tenant_id));
  WITH below AS MATERIALIZED (
    SELECT l.id, l.quota_uses -> NEW.kind AS use
      FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
     WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state <> 'released'
       AND l.quota_uses ? NEW.kind
     ORDER BY l.id FOR NO KEY UPDATE OF l
  ), takes AS (
    SELECT below.id, win.key, coalesce(win.value, use ->> 'amount')::bigint AS amount
      FROM below LEFT JOIN LATERAL jsonb_each_text(use -> 'windows') AS win ON true
     WHERE NEW.kind <> 'gpu_seconds' OR win.key <= counted_in
  ), parts AS (
    SELECT id, jsonb_agg(jsonb_build_array(NEW.id, amount, key) ORDER BY key) AS parts,
           sum(amount) FILTER (WHERE NEW.kind <> 'gpu_seconds' OR key = counted_in) AS amount
      FROM takes GROUP BY id
  ), told AS (
    UPDATE broker_lease l
       SET quota_uses = jsonb_set(l.quota_uses, ARRAY[NEW.kind, 'parts'],
                                  l.quota_uses -> NEW.kind -> 'parts' || parts.parts)
      FROM parts WHERE parts.id = l.id RETURNING parts.amount
  )
  SELECT coalesce(sum(amount), 0) INTO held FROM told;
  IF NEW.kind = 'gpu_seconds' THEN
    SELECT coalesce(sum(least(asked, greatest(used - earlier, 0))), 0) INTO spent FROM (
      SELECT (l.quota_uses #>> ARRAY['gpu_seconds', 'windows', counted_in])::bigint AS asked,
             (SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(l.quota_uses #> '{gpu_seconds,windows}')
               WHERE key < counted_in) AS earlier,
             floor(extract(epoch FROM l.ended_at - date_trunc('second', l.active_at)))::bigint
               * l.quantity * o.milli_units AS used
        FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
        JOIN broker_offering o ON o.id = l.offering_id
       WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state = 'released'
         AND l.ended_at >= NEW.window_start AND l.active_at IS NOT NULL) over_by_now;
  END IF;
  NEW.used := NEW.used + held + spent;
  NEW."limit" := greatest(NEW."limit", NEW.used);  -- grants are tested against soft_limit, which stays
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0016_volumes")]

    operations = [
        migrations.AddField("lease", "waits_since", models.DateTimeField(null=True)),
        migrations.AddField("lease", "spent_s", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.RunSQL(
            WAITING.format(since="coalesce(waits_since, created_at)") + HANDED,
            WAITING.format(since="created_at") + HANDED,
        ),
        migrations.RunSQL(COUNT, BEFORE),
    ]
