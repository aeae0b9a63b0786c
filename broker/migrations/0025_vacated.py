"""What was left on a card, and when: from it placement knows which slices are still cut there."""

from django.db import migrations

from tenants.models.walls import handed

# Everyone may know what ended on a card, nobody whose it was.
VIEW = """
CREATE VIEW broker_vacated AS
  SELECT gpu_id, lower(placement) AS start, profile, isolation, held_at, released_at
    FROM broker_allocation WHERE released_at IS NOT NULL;
GRANT SELECT ON broker_vacated TO gpubroker_web, gpubroker_worker, gpubroker_staff;
"""
NO_VIEW = """
SET LOCAL ROLE gpubroker_sweep;  -- only whoever owns it may drop it
DROP VIEW broker_vacated;
RESET ROLE;
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0024_published")]
    operations = [migrations.RunSQL(VIEW + handed("VIEW broker_vacated", to="gpubroker_sweep"), NO_VIEW)]
