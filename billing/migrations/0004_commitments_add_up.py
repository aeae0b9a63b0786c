"""Several commitments to one offering at a time."""

from django.contrib.postgres.indexes import GistIndex
from django.db import migrations


class Migration(migrations.Migration):
    """Let commitments to one offering overlap; they add up."""

    dependencies = [("billing", "0003_quotes_are_ceilings")]

    operations = [
        migrations.RemoveConstraint("commitment", "one_commitment_at_a_time"),
        migrations.AddIndex(
            "commitment", GistIndex(fields=["tenant", "offering", "valid"], name="commitments_in_force")
        ),
    ]
