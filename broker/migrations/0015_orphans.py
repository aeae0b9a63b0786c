"""Whose a cluster's objects are, what in it no lease accounts for, and clusters that are not what they were."""

import django.db.models.deletion
from django.db import migrations, models

import broker.models.keys


class Migration(migrations.Migration):
    dependencies = [
        ("broker", "0014_examinations"),
    ]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("mark", models.CharField(default=broker.models.keys.installation_id, max_length=40)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="installation_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Orphan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("known", models.BooleanField(default=False)),
                ("found_at", models.DateTimeField()),
                ("held_at", models.DateTimeField(null=True)),
                ("agreed_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="orphans",
                        to="broker.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="orphan_once_per_cluster", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="cluster",
            name="frozen",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
    ]
