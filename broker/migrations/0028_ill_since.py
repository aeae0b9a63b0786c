"""Since when a lease is degraded."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0027_held_once_free")]
    operations = [migrations.AddField("lease", "ill_since", models.DateTimeField(null=True))]
