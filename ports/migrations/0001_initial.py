"""Create the table of the outbox."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.CharField(max_length=80)),
                ("subject", models.CharField(max_length=80)),
                ("tenant_id", models.CharField(blank=True, default="", max_length=40)),
                ("request_id", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
            ],
            options={"indexes": [models.Index(fields=["at", "id"], name="ring_order")]},
        )
    ]
