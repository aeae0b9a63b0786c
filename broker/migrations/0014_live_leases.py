"""An index of live leases, and a function that refreshes statistics."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import Q

STATISTICS = (Path(__file__).parent / "sql" / "statistics.sql").read_text()


class Migration(migrations.Migration):
    """Index live leases, so that operators' pages do not read ended ones."""

    dependencies = [("broker", "0013_drivers_of_gpus")]

    operations = [
        migrations.AddIndex(
            "lease", models.Index(fields=["tenant", "id"], name="lease_live", condition=~Q(state="released"))
        ),
        migrations.RunSQL(STATISTICS, "DROP FUNCTION refresh_lease_statistics()"),
    ]
