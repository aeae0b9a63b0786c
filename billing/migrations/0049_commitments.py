"""Units of an offering that tenants agree to pay for, used or not."""

import billing.models.keys
import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0048_several_disputes_of_a_note'),
        ('broker', '0030_volume_steps'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='Commitment',
            fields=[
                ('id', models.CharField(default=billing.models.keys.commitment_id, max_length=40, primary_key=True, serialize=False)),
                ('units', models.PositiveIntegerField()),
                ('nano_per_hour', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('valid', django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                ('agreed_by', models.CharField(max_length=254)),
                ('agreed_at', models.DateTimeField()),
                ('offering', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.offering')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [django.contrib.postgres.constraints.ExclusionConstraint(expressions=[(models.F('tenant'), '='), (models.F('offering'), '='), ('valid', '&&')], name='one_commitment_at_a_time'), models.CheckConstraint(condition=models.Q(('nano_per_hour__gt', 0), ('units__gt', 0)), name='commitment_of_something'), models.CheckConstraint(condition=models.Q(('valid__isempty', False)), name='commitment_lasts')],
            },
        ),
    ]
