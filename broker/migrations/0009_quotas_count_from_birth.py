"""A quota begins with what is held below it at that moment, whoever makes it, and the leases remember their part."""

from django.db import migrations

# Whoever takes quota holds the same lock, shared, from before it looks for quotas until it has committed
# (tenants/services/quotas.py: hold_off_new): it is counted here, or finds the new quota there.
# Of GPU-hours all that was asked for in the quota's window counts; a lease that is over by now, only what it used.
COUNT = """
CREATE FUNCTION quota_counts_holdings() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER quota_counts_holdings BEFORE INSERT ON tenants_quota
  FOR EACH ROW EXECUTE FUNCTION quota_counts_holdings();
"""
UNCOUNT = """
DROP TRIGGER quota_counts_holdings ON tenants_quota;
DROP FUNCTION quota_counts_holdings();
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0008_fewer_indexes"), ("tenants", "0006_fewer_indexes")]
    operations = [migrations.RunSQL(COUNT, UNCOUNT)]
