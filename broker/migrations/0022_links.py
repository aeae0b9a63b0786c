"""How the cards of a node reach each other, and how near a lease wants its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0021_moves")]

    operations = [
        migrations.AddField(
            model_name="gpu",
            name="fabric",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="gpu",
            name="numa",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="lease",
            name="topology",
            field=models.CharField(blank=True, db_default="", default="", max_length=10),
        ),
    ]
