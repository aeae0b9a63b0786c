"""The namespaces from which people come to leases: until now one that was called `gateway`, whatever the door."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0017_stop_and_start")]
    operations = [
        migrations.AddField(
            model_name="cluster",
            name="entrances",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
    ]
