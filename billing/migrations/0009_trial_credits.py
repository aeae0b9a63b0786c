"""People who had trial credit."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the table of mailboxes that had trial credit."""

    dependencies = [("billing", "0008_journal_settings")]

    operations = [
        migrations.CreateModel(
            name="TrialCredit",
            fields=[
                ("mailbox", models.CharField(max_length=254, primary_key=True, serialize=False)),
                ("given_at", models.DateTimeField()),
            ],
        ),
    ]
