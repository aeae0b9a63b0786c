"""Credit that operators took back, and prices that were withdrawn before they began."""

import re
from pathlib import Path

from django.db import migrations, models

FOLDER = Path(__file__).parent / "sql"


def _before() -> str:
    """Return the functions as they were before this migration."""
    texts = []
    for name, function in (("triggers_grants", "refuse_odd_lapse"), ("triggers_prices", "refuse_price_change")):
        found = re.search(
            rf"CREATE FUNCTION {function}\(\).*?\nEND \$\$;", (FOLDER / f"{name}.sql").read_text(), re.DOTALL
        )
        texts.append(found[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    return "\n".join(texts)


class Migration(migrations.Migration):
    """Add who took back a grant and why, and which price a scheduled one replaces."""

    dependencies = [("billing", "0011_bank_receipts")]

    operations = [
        migrations.AddField(
            "grantexpiry", "revoked_by", models.CharField(blank=True, db_default="", default="", max_length=254)
        ),
        migrations.AddField(
            "grantexpiry", "reason", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
        migrations.AddConstraint(
            "grantexpiry",
            models.CheckConstraint(
                condition=models.Q(("reason", ""), ("revoked_by", ""))
                | models.Q(models.Q(("revoked_by", ""), _negated=True), models.Q(("reason", ""), _negated=True)),
                name="grant_revoked_for_a_reason",
            ),
        ),
        migrations.AddField("priceversion", "replaced_id", models.BigIntegerField(null=True)),
        migrations.AddField("priceversion", "replaced_until", models.DateTimeField(null=True)),
        migrations.RunSQL((FOLDER / "withdrawals.sql").read_text(), _before()),
    ]
