"""Budgets by project, their months, and what leases set aside of them."""

import billing.models.keys
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0014_credit_walls'),
        ('broker', '0027_held_once_free'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.CharField(default=billing.models.keys.budget_id, max_length=40, primary_key=True, serialize=False)),
                ('currency', models.CharField(max_length=3)),
                ('limit_minor', models.BigIntegerField()),
                ('version', models.PositiveIntegerField(default=1)),
                ('made_at', models.DateTimeField()),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.project')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='BudgetMonth',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('base_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('taken_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('spent_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='months', to='billing.budget')),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.billingperiod')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.CharField(default=billing.models.keys.hold_id, max_length=40, primary_key=True, serialize=False)),
                ('currency', models.CharField(max_length=3)),
                ('opened_at', models.DateTimeField()),
                ('looked_at', models.DateTimeField()),
                ('seq', models.PositiveIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('lease', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.lease')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='HoldPart',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('spent_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='billing.hold')),
                ('month', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='billing.budgetmonth')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.UniqueConstraint(fields=('tenant', 'project'), name='budget_once_per_node'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('limit_minor__gte', 0)), name='budget_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='budgetmonth',
            constraint=models.UniqueConstraint(fields=('tenant', 'budget', 'period'), name='budget_month_once'),
        ),
        migrations.AddConstraint(
            model_name='budgetmonth',
            constraint=models.CheckConstraint(condition=models.Q(('base_num__gte', 0), ('spent_num__gte', models.F('base_num')), ('taken_num__gte', models.F('spent_num'))), name='budget_month_adds_up'),
        ),
        migrations.AddIndex(
            model_name='hold',
            index=models.Index(condition=models.Q(('settled_at__isnull', True)), fields=['looked_at'], name='hold_open'),
        ),
        migrations.AddConstraint(
            model_name='holdpart',
            constraint=models.UniqueConstraint(fields=('tenant', 'hold', 'month'), name='hold_part_once'),
        ),
        migrations.AddConstraint(
            model_name='holdpart',
            constraint=models.CheckConstraint(condition=models.Q(('num__gte', models.F('spent_num')), ('spent_num__gte', 0)), name='hold_part_covers'),
        ),
    ]
