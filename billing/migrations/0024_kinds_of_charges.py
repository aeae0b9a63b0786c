"""A charge is of a kind, and where a price holds twice within its stretch, one of its parts: both are in its key."""

from django.db import migrations, models

KEY = ["lease_id", "seq", "price_version_id", "period_id", "meter"]
MORE = ["kind", "part"]


def keyed(columns: list[str]) -> str:
    """Write how the key becomes these columns; Django alters no key of several columns by itself."""
    return (
        "ALTER TABLE billing_ratedcharge DROP CONSTRAINT billing_ratedcharge_pkey,"
        f" ADD PRIMARY KEY ({', '.join(columns)});"
    )


class Migration(migrations.Migration):
    dependencies = [("billing", "0023_paper_walls")]
    operations = [
        migrations.AddField(
            model_name="ratedcharge",
            name="kind",
            field=models.CharField(
                choices=[("usage", "Usage"), ("adjust", "Adjust")],
                db_default="usage",
                default="usage",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="ratedcharge",
            name="part",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(keyed([*KEY, *MORE]), keyed(KEY))],
            state_operations=[
                migrations.AlterField(
                    model_name="ratedcharge",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        *KEY, *MORE, blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
            ],
        ),
        migrations.RemoveConstraint(model_name="ratedcharge", name="charge_has_seconds"),
        migrations.AddConstraint(
            model_name="ratedcharge",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "usage"), ("unit_seconds__gt", 0)),
                    models.Q(("exact_num__lte", 0), ("kind", "adjust"), ("unit_seconds__lt", 0)),
                    _connector="OR",
                ),
                name="charge_has_seconds",
            ),
        ),
    ]
