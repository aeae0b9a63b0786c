"""Quotes as ceilings of what is charged."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Make new quotes ceilings; leases citing older ones keep their price."""

    dependencies = [("billing", "0002_database_rules")]

    operations = [
        migrations.AddField("quote", "is_ceiling", models.BooleanField(default=False, db_default=False)),
        migrations.AlterField("quote", "is_ceiling", models.BooleanField(default=True, db_default=True)),
    ]
