"""What whole months come to: charges of a month, discounts and minimums, and prices in tiers."""

import billing.models.keys
import django.contrib.postgres.constraints
import django.contrib.postgres.fields
import django.contrib.postgres.fields.ranges
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0033_dunning'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.AddField(
            model_name='invoiceline',
            name='kind',
            field=models.CharField(choices=[('usage', 'Usage'), ('storage', 'Storage'), ('shortfall', 'Committed and not used'), ('minimum', 'Minimum spend')], db_default='usage', default='usage', max_length=9),
        ),
        migrations.AddField(
            model_name='invoiceline',
            name='month_num',
            field=models.DecimalField(db_default=0, decimal_places=0, default=0, max_digits=38),
        ),
        migrations.AddField(
            model_name='priceversion',
            name='model',
            field=models.CharField(choices=[('flat', 'Flat'), ('graduated', 'Graduated'), ('volume', 'Volume'), ('package', 'Package')], db_default='flat', default='flat', max_length=9),
        ),
        migrations.AddField(
            model_name='priceversion',
            name='tier_from_s',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name='priceversion',
            name='tier_nano',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        migrations.CreateModel(
            name='Campaign',
            fields=[
                ('name', models.CharField(max_length=80)),
                ('percent_bp', models.PositiveIntegerField(null=True)),
                ('minor', models.BigIntegerField(null=True)),
                ('currency', models.CharField(blank=True, default='', max_length=3)),
                ('offerings', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ('price_classes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=12), default=list, size=None)),
                ('id', models.CharField(default=billing.models.keys.campaign_id, max_length=40, primary_key=True, serialize=False)),
                ('code', models.CharField(max_length=40, unique=True)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField(null=True)),
                ('months', models.PositiveSmallIntegerField(null=True)),
                ('most', models.PositiveIntegerField(null=True)),
                ('redeemed', models.PositiveIntegerField(default=0)),
                ('created_by', models.CharField(max_length=254)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('until__isnull', True), ('until__gt', models.F('since')), _connector='OR'), name='campaign_lasts'), models.CheckConstraint(condition=models.Q(('months__isnull', True), ('months__gt', 0), _connector='OR'), name='campaign_of_months'), models.CheckConstraint(condition=models.Q(('most__isnull', True), ('redeemed__lte', models.F('most')), _connector='OR'), name='campaign_not_used_up_twice'), models.CheckConstraint(condition=models.Q(models.Q(('minor__isnull', True), ('percent_bp__gt', 0), ('percent_bp__lte', 10000)), models.Q(('minor__gt', 0), ('percent_bp__isnull', True)), _connector='OR'), name='campaign_of_something')],
            },
        ),
        migrations.CreateModel(
            name='MonthCharge',
            fields=[
                ('pk', models.CompositePrimaryKey('tenant_id', 'billed_period_id', 'kind', 'source', 'project_id', 'offering_id', 'price_version_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.CharField(max_length=40)),
                ('period_id', models.BigIntegerField()),
                ('billed_period_id', models.BigIntegerField()),
                ('kind', models.CharField(choices=[('tier', 'Tier'), ('commit', 'Commit'), ('percent', 'Percent'), ('amount', 'Amount'), ('storage', 'Storage'), ('shortfall', 'Shortfall'), ('minimum', 'Minimum')], max_length=9)),
                ('source', models.CharField(max_length=40)),
                ('project_id', models.CharField(blank=True, max_length=40)),
                ('offering_id', models.CharField(max_length=40)),
                ('price_version_id', models.BigIntegerField()),
                ('n', models.PositiveIntegerField()),
                ('units', models.BigIntegerField(default=0)),
                ('meter', models.CharField(blank=True, default='', max_length=20)),
                ('base_num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('exact_num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('label', models.CharField(max_length=200)),
                ('terms', models.JSONField(default=dict)),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('exact_num__lt', 0), ('kind__in', ('tier', 'commit', 'percent', 'amount'))), models.Q(models.Q(('kind__in', ('tier', 'commit', 'percent', 'amount')), _negated=True), ('exact_num__gt', 0)), _connector='OR'), name='month_charge_has_its_sign'), models.CheckConstraint(condition=models.Q(('kind__in', ['tier', 'commit', 'percent', 'amount', 'storage', 'shortfall', 'minimum'])), name='month_charge_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='Discount',
            fields=[
                ('name', models.CharField(max_length=80)),
                ('percent_bp', models.PositiveIntegerField(null=True)),
                ('minor', models.BigIntegerField(null=True)),
                ('currency', models.CharField(blank=True, default='', max_length=3)),
                ('offerings', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ('price_classes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=12), default=list, size=None)),
                ('id', models.CharField(default=billing.models.keys.discount_id, max_length=40, primary_key=True, serialize=False)),
                ('first_month', models.CharField(max_length=7)),
                ('last_month', models.CharField(max_length=7, null=True)),
                ('given_by', models.CharField(max_length=254)),
                ('given_at', models.DateTimeField()),
                ('campaign', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='discounts', to='billing.campaign')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'campaign'), name='campaign_redeemed_once'), models.CheckConstraint(condition=models.Q(models.Q(('minor__isnull', True), ('percent_bp__gt', 0), ('percent_bp__lte', 10000)), models.Q(('minor__gt', 0), ('percent_bp__isnull', True)), _connector='OR'), name='discount_of_something')],
            },
        ),
        migrations.CreateModel(
            name='Minimum',
            fields=[
                ('id', models.CharField(default=billing.models.keys.minimum_id, max_length=40, primary_key=True, serialize=False)),
                ('minor', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('valid', django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                ('agreed_by', models.CharField(max_length=254)),
                ('agreed_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [django.contrib.postgres.constraints.ExclusionConstraint(expressions=[(models.F('tenant'), '='), ('valid', '&&')], name='one_minimum_at_a_time'), models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='minimum_of_something')],
            },
        ),
    ]
