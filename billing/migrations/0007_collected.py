"""Whether an invoice was to be collected or to be transferred when it became final; all there are: transferred."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0006_payment_walls")]

    operations = [
        migrations.AddField("invoice", "collected", models.BooleanField(default=False)),
    ]
