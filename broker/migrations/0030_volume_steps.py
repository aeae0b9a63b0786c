"""A history of every volume, which storage is metered by: points that chain themselves, as transitions do."""

from django.db import migrations, models
from django.db.models.functions import Now

from tenants.models.walls import append_only, tenant_wall

CHAIN = """
ALTER TABLE broker_volumestep
  ALTER COLUMN recorded_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint,
  ADD CONSTRAINT volume_step_whole_seconds CHECK (at = date_trunc('second', at)),
  ADD CONSTRAINT volume_step_chained CHECK (
    (seq = 0 AND prev_seq IS NULL AND prev_at IS NULL AND prev_gib IS NULL AND size_gib > 0) OR
    (seq > 0 AND prev_seq IS NOT NULL AND prev_at IS NOT NULL AND prev_gib IS NOT NULL
     AND prev_seq = seq - 1 AND prev_at <= at AND prev_gib > 0)),  -- what is over has nothing after it
  ADD CONSTRAINT volume_step_moment_once UNIQUE (volume_id, seq, at, size_gib, offering_id, project_id),
  ADD CONSTRAINT volume_step_follows FOREIGN KEY (volume_id, prev_seq, prev_at, prev_gib, offering_id, project_id)
    REFERENCES broker_volumestep (volume_id, seq, at, size_gib, offering_id, project_id),
  ADD CONSTRAINT volume_step_of_a_volume FOREIGN KEY (volume_id) REFERENCES broker_volume (id);
"""
UNCHAIN = """
ALTER TABLE broker_volumestep
  DROP CONSTRAINT volume_step_of_a_volume, DROP CONSTRAINT volume_step_follows,
  DROP CONSTRAINT volume_step_moment_once, DROP CONSTRAINT volume_step_chained,
  DROP CONSTRAINT volume_step_whole_seconds, ALTER COLUMN xid SET DEFAULT 0;
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0029_storage_offerings")]

    operations = [
        migrations.CreateModel(
            name="VolumeStep",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "volume_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("volume_id", models.CharField(max_length=40)),
                ("seq", models.PositiveIntegerField()),
                ("tenant_id", models.CharField(max_length=40)),
                ("project_id", models.CharField(max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("prev_seq", models.PositiveIntegerField(null=True)),
                ("prev_at", models.DateTimeField(null=True)),
                ("prev_gib", models.PositiveIntegerField(null=True)),
                ("size_gib", models.PositiveIntegerField()),
                ("cause", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                ("xid", models.BigIntegerField(db_default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["tenant_id", "xid"], name="volume_step_news")],
            },
        ),
        migrations.RunSQL(CHAIN, UNCHAIN),
        tenant_wall("broker_volumestep"),
        append_only("broker_volumestep"),
    ]
