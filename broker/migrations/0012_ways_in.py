"""How people come in to what runs in a cluster."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0011_layout_changes")]

    operations = [
        migrations.AddField("cluster", name, models.CharField(blank=True, default="", max_length=200))
        for name in ("domain", "door", "bastion")
    ]
