"""CPU, memory and scratch of nodes, offerings and leases."""

from django.db import migrations, models

# Offerings so far gave a share of 12 CPUs, 96 GiB and 200 GiB for a whole GPU, by units of the GPU's memory grid.
FILL_OFFERINGS = """
UPDATE broker_offering SET cpu_milli = 0, host_memory_mib = 0, scratch_mib = 0 WHERE gpu_model_id IS NULL;
UPDATE broker_offering o
   SET cpu_milli = greatest(12000 * s.units / s.parts, 1),
       host_memory_mib = greatest(98304 * s.units / s.parts, 1),
       scratch_mib = greatest(204800 * s.units / s.parts, 1)
  FROM (SELECT part.id, coalesce(cut.units, 1) AS units,
               CASE WHEN cut.units IS NOT NULL THEN greatest(m.memory_grid, 1)
                    WHEN part.profile = 'half' THEN 2
                    WHEN part.profile = 'quarter' THEN 4
                    ELSE 1 END AS parts
          FROM broker_offering part
          JOIN broker_gpumodel m ON m.name = part.gpu_model_id
          LEFT JOIN LATERAL (SELECT (each ->> 'memory')::integer AS units
                               FROM jsonb_array_elements(m.spec -> 'profiles') each
                              WHERE part.isolation = 'hardware' AND each ->> 'name' = part.profile
                              LIMIT 1) cut ON true) s
 WHERE s.id = o.id;
"""
TRACK_NODES = """
DROP TRIGGER changed ON broker_node;
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW
  WHEN ((OLD.cluster_id, OLD.name, OLD.state, OLD.unschedulable_reason, OLD.refused_until, OLD.resource_shortage,
         OLD.xid)
        IS DISTINCT FROM
        (NEW.cluster_id, NEW.name, NEW.state, NEW.unschedulable_reason, NEW.refused_until, NEW.resource_shortage,
         NEW.xid))
  EXECUTE FUNCTION note_change();
"""
TRACK_NODES_BEFORE = """
DROP TRIGGER changed ON broker_node;
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW
  WHEN ((OLD.cluster_id, OLD.name, OLD.state, OLD.unschedulable_reason, OLD.refused_until, OLD.xid)
        IS DISTINCT FROM
        (NEW.cluster_id, NEW.name, NEW.state, NEW.unschedulable_reason, NEW.refused_until, NEW.xid))
  EXECUTE FUNCTION note_change();
"""


class Migration(migrations.Migration):
    """Add what nodes have, what offerings promise, and what leases were promised.

    A lease of before keeps zeros, which stand for the share it was rendered with.
    """

    dependencies = [("broker", "0003_discovered_models_and_node_reasons")]

    operations = [
        migrations.AddField("lease", "cpu_milli", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("lease", "host_memory_mib", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("lease", "scratch_mib", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("node", "cpu_milli", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("node", "memory_mib", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("node", "scratch_mib", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "node", "resource_shortage", models.CharField(blank=True, db_default="", default="", max_length=300)
        ),
        migrations.AddField("offering", "cpu_milli", models.PositiveIntegerField(db_default=12000, default=12000)),
        migrations.AddField(
            "offering", "host_memory_mib", models.PositiveIntegerField(db_default=98304, default=98304)
        ),
        migrations.AddField("offering", "scratch_mib", models.PositiveIntegerField(db_default=204800, default=204800)),
        migrations.RunSQL(FILL_OFFERINGS, migrations.RunSQL.noop),
        migrations.RunSQL(TRACK_NODES, TRACK_NODES_BEFORE),
    ]
