"""Prices that leases were promised: behind the tenant's wall, never changed, never another price than a version's."""

import django.db.models.deletion
from django.db import migrations, models

import billing.models.keys
from tenants.models.walls import append_only, tenant_wall

# A version's price never changes, so what is equal now stays equal.
PROMISED = """
CREATE FUNCTION refuse_odd_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_priceversion v WHERE v.id = NEW.price_version_id AND v.valid @> NEW.made_at
                   AND (v.offering_id, v.currency, v.nano_per_hour)
                     = (NEW.offering_id, NEW.currency, NEW.nano_per_hour)) THEN
    RAISE EXCEPTION 'quote % names a price that nobody published', NEW.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER quote_of_a_price AFTER INSERT ON billing_quote FOR EACH ROW EXECUTE FUNCTION refuse_odd_quote();
"""
ANYTHING = "DROP TRIGGER quote_of_a_price ON billing_quote; DROP FUNCTION refuse_odd_quote();"


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0011_ledger_walls"),
        ("broker", "0026_cited_quotes"),
        ("tenants", "0008_makers"),
    ]

    operations = [
        migrations.CreateModel(
            name="Quote",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=billing.models.keys.quote_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("project_id", models.CharField(max_length=40)),
                ("currency", models.CharField(max_length=3)),
                ("nano_per_hour", models.BigIntegerField()),
                ("quantity", models.PositiveIntegerField()),
                ("max_duration_s", models.PositiveIntegerField()),
                ("hold_minor", models.BigIntegerField()),
                ("cap_minor", models.BigIntegerField()),
                ("made_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("cited_at", models.DateTimeField()),
                (
                    "lease",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="broker.lease"
                    ),
                ),
                (
                    "offering",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="broker.offering",
                    ),
                ),
                (
                    "price_version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="billing.priceversion",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("nano_per_hour__gte", 0)), name="quote_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quantity__gte", 1)), name="quote_of_something"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cited_at__lt", models.F("expires_at"))),
                        name="quote_cited_in_time",
                    ),
                ],
            },
        ),
        tenant_wall("billing_quote"),
        append_only("billing_quote"),
        migrations.RunSQL(PROMISED, ANYTHING),
    ]
