"""Limits above which launches need approval, and the requests for it."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from billing.models import default_ids

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "approvals.sql").read_text()


class Migration(migrations.Migration):
    """Add both tables with row-level security."""

    dependencies = [
        ('billing', '0009_trial_credits'),
        ('broker', '0013_drivers_of_gpus'),
        ('tenants', '0008_new_tenants'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApprovalLimit',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('set_by', models.CharField(choices=[('tenant', 'Tenant'), ('operator', 'Operator')], max_length=8)),
                ('currency', models.CharField(max_length=3)),
                ('max_minor', models.BigIntegerField(null=True)),
                ('max_milli_gpus', models.BigIntegerField(null=True)),
                ('max_duration_s', models.BigIntegerField(null=True)),
                ('set_at', models.DateTimeField()),
                ('set_by_label', models.CharField(max_length=254)),
                ('version', models.PositiveIntegerField(default=1)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'set_by'), name='approval_limit_once'), models.CheckConstraint(condition=models.Q(('set_by__in', ['tenant', 'operator'])), name='approval_limit_set_by_known')],
            },
        ),
        migrations.CreateModel(
            name='ApprovalRequest',
            fields=[
                ('id', models.CharField(default=default_ids.approval_request_id, max_length=40, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('launch', 'Launch'), ('extension', 'Extension'), ('start', 'Start')], max_length=9)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('approved', 'Approved'), ('declined', 'Declined'), ('expired', 'Expired'), ('withdrawn', 'Withdrawn')], default='waiting', max_length=9)),
                ('name', models.CharField(max_length=120)),
                ('quantity', models.PositiveIntegerField()),
                ('array_size', models.PositiveIntegerField(default=1)),
                ('request', models.JSONField(default=dict)),
                ('more_s', models.PositiveIntegerField(null=True)),
                ('cost_minor', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('milli_gpus', models.BigIntegerField()),
                ('duration_s', models.BigIntegerField()),
                ('exceeded', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                ('note', models.CharField(blank=True, default='', max_length=300)),
                ('requested_by_kind', models.CharField(max_length=20)),
                ('requested_by', models.CharField(max_length=40)),
                ('requested_by_label', models.CharField(max_length=254)),
                ('requested_with_token', models.CharField(blank=True, default='', max_length=40)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('needs_tenant', models.BooleanField()),
                ('needs_operator', models.BooleanField()),
                ('tenant_approved_at', models.DateTimeField(null=True)),
                ('tenant_approved_by', models.CharField(blank=True, default='', max_length=254)),
                ('operator_approved_at', models.DateTimeField(null=True)),
                ('operator_approved_by', models.CharField(blank=True, default='', max_length=254)),
                ('decided_at', models.DateTimeField(null=True)),
                ('decided_by', models.CharField(blank=True, default='', max_length=254)),
                ('reason', models.CharField(blank=True, default='', max_length=300)),
                ('version', models.PositiveIntegerField(default=1)),
                ('array', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.leasearray')),
                ('lease', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.lease')),
                ('offering', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.offering')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.project')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='approvals_newest_first'), models.Index(condition=models.Q(('state', 'waiting')), fields=['expires_at'], name='approvals_waiting'), models.Index(condition=models.Q(('lease__isnull', False)), fields=['lease'], name='approvals_of_lease'), models.Index(condition=models.Q(('array__isnull', False)), fields=['array'], name='approvals_of_array')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['launch', 'extension', 'start'])), name='approval_kind_known'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'approved', 'declined', 'expired', 'withdrawn'])), name='approval_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'approved'), _negated=True), models.Q(models.Q(('needs_tenant', False), ('tenant_approved_at__isnull', False), _connector='OR'), models.Q(('needs_operator', False), ('operator_approved_at__isnull', False), _connector='OR')), _connector='OR'), name='approved_by_all_it_needs')],
            },
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
