"""What runs on a lease: a template, variables, keys."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0010_kubernetes_clusters")]

    operations = [
        migrations.AddField(
            "lease", "workload", models.CharField(blank=True, db_default="", default="", max_length=20)
        ),
        migrations.AddField("lease", "env", models.JSONField(db_default={}, default=dict)),
        migrations.AddField("lease", "ssh_keys", models.JSONField(db_default=[], default=list)),
    ]
