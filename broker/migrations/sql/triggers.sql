-- Refuse or complete writes, whichever program makes them.

CREATE FUNCTION refuse_after_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.before = 'released' THEN
    RAISE EXCEPTION 'lease % is released: nothing follows', NEW.lease_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER released_is_final BEFORE INSERT ON broker_transition
  FOR EACH ROW EXECUTE FUNCTION refuse_after_released();

-- Start a new quota with what is held below its project already, and note it in the leases that hold it. The lock is
-- the one that tenants/services/quotas.py takes, shared, before it looks for quotas and until it commits: a use is
-- either counted here, or it finds the new quota. All GPU seconds that were requested in the window of the quota
-- count; of a released lease only those that it used.
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
             (l.active_seconds
               + coalesce(floor(extract(epoch FROM l.ended_at - date_trunc('second', l.active_at)))::bigint, 0))
               * l.quantity * o.milli_units AS used
        FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
        JOIN broker_offering o ON o.id = l.offering_id
       WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state = 'released'
         AND l.ended_at >= NEW.window_start
         AND (l.active_at IS NOT NULL OR l.active_seconds > 0)) over_by_now;
  END IF;
  IF NEW.kind = 'storage' THEN
    SELECT coalesce(sum(v.size_gib), 0) INTO held FROM broker_volume v JOIN tenants_project p ON p.id = v.project_id
     WHERE v.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND v.state <> 'deleted';
  END IF;
  NEW.used := NEW.used + held + spent;
  NEW."limit" := greatest(NEW."limit", NEW.used);  -- grants are tested against soft_limit, which stays
  RETURN NEW;
END $$;
CREATE TRIGGER quota_counts_holdings BEFORE INSERT ON tenants_quota
  FOR EACH ROW EXECUTE FUNCTION quota_counts_holdings();

-- Date a place from the release that made it free. An insert may wait in the exclusion constraint for a release that
-- is being committed, and it does so after every BEFORE trigger; this one therefore runs AFTER. The view it reads
-- shows places, not tenants, so it needs no rights of another role.
CREATE FUNCTION hold_once_free() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE freed timestamptz := (
  SELECT max(released_at) FROM broker_vacated
   WHERE gpu_id = NEW.gpu_id AND released_at > NEW.held_at
     AND start < upper(NEW.placement) AND stop > lower(NEW.placement));
BEGIN
  IF freed IS NOT NULL THEN
    UPDATE broker_allocation SET held_at = freed WHERE id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER held_once_free AFTER INSERT ON broker_allocation
  FOR EACH ROW EXECUTE FUNCTION hold_once_free();
