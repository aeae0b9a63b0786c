"""What a card says can be cut from it, where that is less than its model can."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("broker", "0023_changes_stay")]

    operations = [
        migrations.AddField(
            model_name="gpu",
            name="published",
            field=models.JSONField(null=True),
        ),
    ]
