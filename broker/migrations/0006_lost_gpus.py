"""GPUs on which nothing can run any more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add since when a GPU is lost."""

    dependencies = [("broker", "0005_lease_secrets")]

    operations = [migrations.AddField("gpu", "lost_since", models.DateTimeField(null=True))]
