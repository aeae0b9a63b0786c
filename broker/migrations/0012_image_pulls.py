"""Image pulls of leases that ask the registry each time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add whether images are always pulled, for new leases only."""

    dependencies = [("broker", "0011_launch_templates")]

    operations = [
        migrations.AddField("lease", "pull_always", models.BooleanField(default=False, db_default=False)),
        migrations.AlterField("lease", "pull_always", models.BooleanField(default=True, db_default=True)),
    ]
