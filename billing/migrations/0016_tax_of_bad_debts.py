"""Tax of written-off invoices, credits of cancelled invoices, and debtor accounts."""

from django.db import migrations, models
from django.db.models import F, Q

RECEIPT_PART = "bankreceiptpart"
KEEP_WRITE_OFF = """
DROP TRIGGER write_off_stays ON billing_writeoff;
CREATE TRIGGER write_off_stays BEFORE UPDATE ON billing_writeoff FOR EACH ROW
  WHEN (OLD.undone_at IS NOT NULL
        OR to_jsonb(NEW) - '{{undone_at,undone_minor,undone_by{more}}}'::text[]
           IS DISTINCT FROM to_jsonb(OLD) - '{{undone_at,undone_minor,undone_by{more}}}'::text[])
  EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    """Keep the tax of bad debts, whether credits are given again, and debtor numbers."""

    dependencies = [("billing", "0015_showback")]

    operations = [
        migrations.AddField("writeoff", "tax", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("writeoff", "undone_tax", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddConstraint(
            "writeoff",
            models.CheckConstraint(
                condition=Q(tax__gte=0, tax__lte=F("minor"), undone_tax__gte=0, undone_tax__lte=F("tax")),
                name="tax_of_a_write_off_is_a_part",
            ),
        ),
        migrations.AddField(RECEIPT_PART, "recovered_tax", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddConstraint(
            RECEIPT_PART,
            models.CheckConstraint(
                condition=Q(recovered_tax=0) | Q(recovered=True, recovered_tax__gt=0, recovered_tax__lte=F("minor")),
                name="recovered_tax_is_a_part",
            ),
        ),
        migrations.AddField("storedbundle", "credits_again", models.BooleanField(db_default=True, default=True)),
        migrations.RunSQL(KEEP_WRITE_OFF.format(more=",undone_tax"), KEEP_WRITE_OFF.format(more="")),
    ]
