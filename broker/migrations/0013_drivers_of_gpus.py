"""Drivers of GPUs, so that one cluster may have nodes of several kinds."""

from django.db import migrations, models

TRACK_GPUS = """
DROP TRIGGER changed ON broker_gpu;
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW
  WHEN ((OLD.node_id, OLD.index, OLD.gpu_model_id, OLD.layout_policy, OLD.fixed_layout, OLD.health,
         OLD.out_of_service_since, OLD.foreign_holder, OLD.published, OLD.driver, OLD.fabric, OLD.numa, OLD.xid)
        IS DISTINCT FROM
        (NEW.node_id, NEW.index, NEW.gpu_model_id, NEW.layout_policy, NEW.fixed_layout, NEW.health,
         NEW.out_of_service_since, NEW.foreign_holder, NEW.published, NEW.driver, NEW.fabric, NEW.numa, NEW.xid))
  EXECUTE FUNCTION note_change();
"""
TRACK_GPUS_BEFORE = """
DROP TRIGGER changed ON broker_gpu;
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW
  WHEN ((OLD.node_id, OLD.index, OLD.gpu_model_id, OLD.layout_policy, OLD.fixed_layout, OLD.health,
         OLD.out_of_service_since, OLD.foreign_holder, OLD.xid)
        IS DISTINCT FROM
        (NEW.node_id, NEW.index, NEW.gpu_model_id, NEW.layout_policy, NEW.fixed_layout, NEW.health,
         NEW.out_of_service_since, NEW.foreign_holder, NEW.xid))
  EXECUTE FUNCTION note_change();
"""


class Migration(migrations.Migration):
    """Add how pods request a GPU's slices; empty until it is read again."""

    dependencies = [("broker", "0012_image_pulls")]

    operations = [
        migrations.AddField(
            "gpu", "driver", models.CharField(blank=True, db_default="", default="", max_length=20)
        ),
        migrations.RunSQL(TRACK_GPUS, TRACK_GPUS_BEFORE),
    ]
