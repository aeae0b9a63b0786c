"""When people are told of a budget and what happens then; letters that are to be sent."""

import billing.models.budgets
import billing.models.keys
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from tenants.models.walls import tenant_wall


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0037_dispute_walls'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.AddField(
            model_name='billingdetails',
            name='letters',
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name='budget',
            name='forecast_thresholds',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), db_default=[80, 100], default=billing.models.budgets.usual_forecast, size=None),
        ),
        migrations.AddField(
            model_name='budget',
            name='grace_minutes',
            field=models.PositiveSmallIntegerField(db_default=60, default=60),
        ),
        migrations.AddField(
            model_name='budget',
            name='stop_all_at',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='budget',
            name='stop_idle_at',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='budget',
            name='stop_new_at',
            field=models.PositiveSmallIntegerField(db_default=100, default=100, null=True),
        ),
        migrations.AddField(
            model_name='budget',
            name='thresholds',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), db_default=[50, 80, 100], default=billing.models.budgets.usual, size=None),
        ),
        migrations.CreateModel(
            name='BudgetAlert',
            fields=[
                ('id', models.CharField(default=billing.models.keys.alert_id, max_length=40, primary_key=True, serialize=False)),
                ('measure', models.CharField(max_length=8)),
                ('percent', models.PositiveSmallIntegerField()),
                ('minor', models.BigIntegerField()),
                ('limit_minor', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('lifted_at', models.DateTimeField(null=True)),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='billing.budget')),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.billingperiod')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('lifted_at__isnull', True)), fields=('tenant', 'budget', 'period', 'measure', 'percent'), name='budget_alert_once'), models.CheckConstraint(condition=models.Q(('measure__in', ['spent', 'forecast'])), name='budget_alert_known')],
            },
        ),
        migrations.CreateModel(
            name='BudgetStop',
            fields=[
                ('id', models.CharField(default=billing.models.keys.budget_stop_id, max_length=40, primary_key=True, serialize=False)),
                ('what', models.CharField(max_length=4)),
                ('percent', models.PositiveSmallIntegerField()),
                ('minor', models.BigIntegerField()),
                ('limit_minor', models.BigIntegerField()),
                ('told_at', models.DateTimeField()),
                ('due_at', models.DateTimeField()),
                ('done_at', models.DateTimeField(null=True)),
                ('ended', models.PositiveIntegerField(default=0)),
                ('lifted_at', models.DateTimeField(null=True)),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='stops', to='billing.budget')),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.billingperiod')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('done_at__isnull', True), ('lifted_at__isnull', True)), fields=['due_at'], name='budget_stop_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('lifted_at__isnull', True)), fields=('tenant', 'budget', 'period', 'what'), name='budget_stop_once'), models.CheckConstraint(condition=models.Q(('what__in', ['idle', 'all'])), name='budget_stop_known'), models.CheckConstraint(condition=models.Q(('due_at__gte', models.F('told_at'))), name='budget_stop_told_first')],
            },
        ),
        migrations.CreateModel(
            name='Letter',
            fields=[
                ('id', models.CharField(default=billing.models.keys.letter_id, max_length=40, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=20)),
                ('about', models.CharField(max_length=40)),
                ('made_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('sent_to', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=254), db_default=[], default=list, size=None)),
                ('sent_at', models.DateTimeField(null=True)),
                ('trouble', models.CharField(blank=True, default='', max_length=300)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='letter_due')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'about'), name='letter_once')],
            },
        ),
        tenant_wall("billing_budgetalert"),
        tenant_wall("billing_budgetstop"),
        tenant_wall("billing_letter"),
    ]
