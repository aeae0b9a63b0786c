"""Exchange rates for VAT; append-only."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import Q

from billing.models import default_ids

SQL = Path(__file__).parent / "sql" / "exchange_rates.sql"
REVERSE = """
DROP TRIGGER append_only ON billing_exchangerate;
DROP TRIGGER append_only_truncate ON billing_exchangerate;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0006_document_language")]

    operations = [
        migrations.CreateModel(
            "ExchangeRate",
            [
                (
                    "id",
                    models.CharField(
                        default=default_ids.exchange_rate_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("own", models.CharField(max_length=3)),
                ("day", models.DateField()),
                ("rate", models.BigIntegerField()),
                ("source", models.CharField(max_length=80)),
                ("created_by", models.CharField(max_length=254)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["currency", "own", "day"], name="exchange_rate_once_a_day"),
                    models.CheckConstraint(condition=Q(rate__gt=0), name="exchange_rate_positive"),
                ]
            },
        ),
        migrations.RunSQL(SQL.read_text(), REVERSE),
    ]
