"""Money that tenants put into their wallets, by hand and by rule."""

import billing.models.keys
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0030_stripe_days'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='ledgertransfer',
            name='kind',
            field=models.CharField(choices=[('invoice', 'Invoice'), ('payment', 'Payment'), ('void', 'Void'), ('credit', 'Credit'), ('draw', 'Draw'), ('grant', 'Grant'), ('topup', 'Topup'), ('lapse', 'Lapse')], max_length=20),
        ),
        migrations.CreateModel(
            name='AutoTopUp',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('threshold_minor', models.BigIntegerField()),
                ('minor', models.BigIntegerField()),
                ('set_at', models.DateTimeField()),
                ('stopped_at', models.DateTimeField(null=True)),
                ('why', models.CharField(blank=True, default='', max_length=200)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='auto_topup_once_a_tenant'), models.CheckConstraint(condition=models.Q(('minor__gt', 0), ('threshold_minor__gt', 0)), name='auto_topup_of_something')],
            },
        ),
        migrations.CreateModel(
            name='TopUp',
            fields=[
                ('id', models.CharField(default=billing.models.keys.topup_id, max_length=40, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('stuck', 'Stuck'), ('succeeded', 'Succeeded'), ('declined', 'Declined')], default='pending', max_length=9)),
                ('minor', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('gateway', models.CharField(max_length=40)),
                ('window', models.BigIntegerField(null=True)),
                ('opened_at', models.DateTimeField()),
                ('opened_by', models.CharField(max_length=40)),
                ('settled_at', models.DateTimeField(null=True)),
                ('reference', models.CharField(blank=True, default='', max_length=120)),
                ('code', models.CharField(blank=True, default='', max_length=60)),
                ('reason', models.CharField(blank=True, default='', max_length=200)),
                ('due_at', models.DateTimeField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('fell', models.PositiveIntegerField(default=0)),
                ('trouble', models.CharField(blank=True, default='', max_length=200)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['due_at'], name='topup_waits')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ('pending', 'stuck'))), fields=('tenant',), name='one_topup_at_a_time'), models.UniqueConstraint(fields=('tenant', 'window'), name='one_topup_a_window'), models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='topup_of_something'), models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'stuck', 'succeeded', 'declined'])), name='topup_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('settled_at__isnull', True), ('status', 'pending')), models.Q(('due_at__isnull', True), ('settled_at__isnull', True), ('status', 'stuck')), models.Q(models.Q(('status__in', ('pending', 'stuck')), _negated=True), ('due_at__isnull', True), ('settled_at__isnull', False)), _connector='OR'), name='topup_waits_or_is_settled')],
            },
        ),
    ]
