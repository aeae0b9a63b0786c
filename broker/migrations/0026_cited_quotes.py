"""Which promise of its price a lease cites."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0025_vacated")]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="quote_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
    ]
