"""A place is held from when it was free on, also when it became free while its next holder waited for it."""

from django.db import migrations

from tenants.models.walls import handed

# The constraint lets whoever comes next wait for a release that is being written, after every trigger that looks
# beforehand; so the look comes last. It tells of places, never of tenants, and asks for no other's rights.
AS_SWEEP = """
GRANT CREATE ON SCHEMA public TO gpubroker_sweep;  -- PostgreSQL asks it of whoever shall make something there
SET LOCAL ROLE gpubroker_sweep;
{}
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM gpubroker_sweep;
"""
VACATED = """
CREATE OR REPLACE VIEW broker_vacated AS
  SELECT gpu_id, lower(placement) AS start, profile, isolation, held_at, released_at{}
    FROM broker_allocation WHERE released_at IS NOT NULL;
GRANT SELECT ON broker_vacated TO gpubroker_web, gpubroker_worker, gpubroker_staff;
"""
VIEW = AS_SWEEP.format(VACATED.format(", upper(placement) AS stop"))
NO_VIEW = AS_SWEEP.format("DROP VIEW broker_vacated;" + VACATED.format(""))
LAST = """
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
DROP TRIGGER held_after_released ON broker_allocation;
SET LOCAL ROLE gpubroker_sweep;  -- only whoever owns it may drop it
DROP FUNCTION hold_after_release();
RESET ROLE;
"""
FIRST = """
CREATE FUNCTION hold_after_release() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  NEW.held_at := greatest(NEW.held_at, (
    SELECT max(released_at) FROM broker_allocation
     WHERE gpu_id = NEW.gpu_id AND released_at > NEW.held_at AND placement && NEW.placement));
  RETURN NEW;
END $$;
CREATE TRIGGER held_after_released BEFORE INSERT ON broker_allocation
  FOR EACH ROW EXECUTE FUNCTION hold_after_release();
DROP TRIGGER held_once_free ON broker_allocation;
DROP FUNCTION hold_once_free();
""" + handed("FUNCTION hold_after_release()", to="gpubroker_sweep")


class Migration(migrations.Migration):
    dependencies = [("broker", "0026_cited_quotes")]
    operations = [migrations.RunSQL(VIEW, NO_VIEW), migrations.RunSQL(LAST, FIRST)]
