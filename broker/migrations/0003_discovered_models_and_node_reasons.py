"""GPU models discovered in clusters, and reasons why nodes take no pods."""

from django.db import migrations, models

TRACK_NODES = """
DROP TRIGGER changed ON broker_node;
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW
  WHEN ((OLD.cluster_id, OLD.name, OLD.state, OLD.unschedulable_reason, OLD.refused_until, OLD.xid)
        IS DISTINCT FROM
        (NEW.cluster_id, NEW.name, NEW.state, NEW.unschedulable_reason, NEW.refused_until, NEW.xid))
  EXECUTE FUNCTION note_change();
"""
TRACK_GPUS = """
DROP TRIGGER changed ON broker_gpu;
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW
  WHEN ((OLD.node_id, OLD.index, OLD.gpu_model_id, OLD.layout_policy, OLD.fixed_layout, OLD.health,
         OLD.out_of_service_since, OLD.foreign_holder, OLD.xid)
        IS DISTINCT FROM
        (NEW.node_id, NEW.index, NEW.gpu_model_id, NEW.layout_policy, NEW.fixed_layout, NEW.health,
         NEW.out_of_service_since, NEW.foreign_holder, NEW.xid))
  EXECUTE FUNCTION note_change();
"""
TRACK_GPUS_BEFORE = """
DROP TRIGGER changed ON broker_gpu;
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW
  WHEN ((OLD.node_id, OLD.index, OLD.gpu_model_id, OLD.layout_policy, OLD.fixed_layout, OLD.health,
         OLD.out_of_service_since, OLD.xid)
        IS DISTINCT FROM
        (NEW.node_id, NEW.index, NEW.gpu_model_id, NEW.layout_policy, NEW.fixed_layout, NEW.health,
         NEW.out_of_service_since, NEW.xid))
  EXECUTE FUNCTION note_change();
"""
TRACK_NODES_BEFORE = """
DROP TRIGGER changed ON broker_node;
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW
  WHEN ((OLD.cluster_id, OLD.name, OLD.state, OLD.xid)
        IS DISTINCT FROM
        (NEW.cluster_id, NEW.name, NEW.state, NEW.xid))
  EXECUTE FUNCTION note_change();
"""


class Migration(migrations.Migration):
    """Add discovered GPU models, tolerations, and why nodes take no pods."""

    dependencies = [
        ("broker", "0002_database_rules"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="tolerations",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="gpu",
            name="foreign_holder",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="gpumodel",
            name="discovered",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="node",
            name="inventory_problem",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="node",
            name="refused_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="refused_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.AddField(
            model_name="node",
            name="unschedulable_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.RunSQL(TRACK_GPUS, TRACK_GPUS_BEFORE),
        migrations.RunSQL(TRACK_NODES, TRACK_NODES_BEFORE),
    ]
