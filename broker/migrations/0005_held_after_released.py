"""A place is held from when it was free on, whenever its new holder read the clock."""

from django.db import migrations, models

from tenants.models.walls import handed

# Who waited for a lock holds a moment older than the release that made room, and two leases would have had
# the place at once. The sweep role's function sees the rows of the tenant before, which the asker may not.
AFTER = """
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
"""
BEFORE = """
DROP TRIGGER held_after_released ON broker_allocation;
DROP FUNCTION hold_after_release();
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0004_lease_seen_and_slow_pods")]
    operations = [
        migrations.AddIndex(
            model_name="allocation",
            index=models.Index(fields=["gpu", "released_at"], name="allocation_freed"),
        ),
        migrations.RunSQL(AFTER + handed("FUNCTION hold_after_release()", to="gpubroker_sweep"), BEFORE),
    ]
