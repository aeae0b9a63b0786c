"""Tokens know the token that they were created with."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the parent of a token; tokens of before have none."""

    dependencies = [("tenants", "0003_ssh_keys")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="parent",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="children",
                to="tenants.apitoken",
            ),
        ),
    ]
