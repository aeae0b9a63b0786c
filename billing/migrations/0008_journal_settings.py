"""Settings and account numbers of the journal export."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("billing", "0007_exchange_rates")]

    operations = [
        migrations.CreateModel(
            "JournalSettings",
            [
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("chart", models.CharField(default="skr03", max_length=5)),
                ("advisor", models.PositiveIntegerField(default=1001)),
                ("client", models.PositiveIntegerField(default=1)),
                ("account_length", models.PositiveSmallIntegerField(default=4)),
                ("fiscal_year_month", models.PositiveSmallIntegerField(default=1)),
                ("time_zone", models.CharField(default="UTC", max_length=60)),
                ("version", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(id=1), name="journal_settings_once"),
                    models.CheckConstraint(condition=Q(chart__in=["skr03", "skr04"]), name="journal_chart_known"),
                    models.CheckConstraint(
                        condition=Q(advisor__gte=1001, advisor__lte=9_999_999, client__gte=1, client__lte=99_999),
                        name="journal_numbers_of_datev",
                    ),
                    models.CheckConstraint(
                        condition=Q(account_length__gte=4, account_length__lte=8), name="journal_account_length"
                    ),
                    models.CheckConstraint(
                        condition=Q(fiscal_year_month__gte=1, fiscal_year_month__lte=12), name="journal_year_begins"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            "JournalAccount",
            [
                ("key", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("number", models.CharField(max_length=9)),
                ("posting_key", models.CharField(blank=True, default="", max_length=4)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(number__regex="^[0-9]{1,9}$", posting_key__regex="^[0-9]{0,4}$"),
                        name="journal_account_of_digits",
                    )
                ]
            },
        ),
        migrations.RunSQL(
            "REVOKE DELETE ON billing_journalsettings, billing_journalaccount FROM gpubroker_web, gpubroker_worker",
            migrations.RunSQL.noop,
        ),
    ]
