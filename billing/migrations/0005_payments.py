"""Payments of invoices, and the books of the gateway that is only simulated."""

import billing.models.keys
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0004_currency_stays'),
        ('tenants', '0007_storage_quota'),
    ]

    operations = [
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', models.CharField(default=billing.models.keys.payment_id, max_length=40, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('succeeded', 'Succeeded'), ('declined', 'Declined')], default='pending', max_length=9)),
                ('minor', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('gateway', models.CharField(max_length=40)),
                ('automatic', models.BooleanField(default=False)),
                ('opened_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(null=True)),
                ('reference', models.CharField(blank=True, default='', max_length=120)),
                ('code', models.CharField(blank=True, default='', max_length=60)),
                ('reason', models.CharField(blank=True, default='', max_length=200)),
                ('due_at', models.DateTimeField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('trouble', models.CharField(blank=True, default='', max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name='SimulatedCharge',
            fields=[
                ('key', models.CharField(max_length=60, primary_key=True, serialize=False)),
                ('payer', models.CharField(max_length=60)),
                ('minor', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('text', models.CharField(max_length=200)),
                ('declined', models.BooleanField()),
                ('made_at', models.DateTimeField()),
                ('answers_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SimulatedPayer',
            fields=[
                ('payer', models.CharField(max_length=60, primary_key=True, serialize=False)),
                ('ills', models.JSONField(default=list)),
            ],
        ),
        migrations.AddField(
            model_name='invoice',
            name='paid_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='invoice',
            index=models.Index(condition=models.Q(('status', 'finalized')), fields=['finalized_at'], name='invoice_to_be_paid'),
        ),
        migrations.AddConstraint(
            model_name='invoice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'paid'), _negated=True), ('paid_at__isnull', False), _connector='OR'), name='paid_at_a_moment'),
        ),
        migrations.AddField(
            model_name='payment',
            name='invoice',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='billing.invoice'),
        ),
        migrations.AddField(
            model_name='payment',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['due_at'], name='payment_waits'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ['pending', 'succeeded'])), fields=('invoice',), name='one_payment_per_invoice'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='payment_of_something'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'succeeded', 'declined'])), name='payment_status_known'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('settled_at__isnull', True), ('status', 'pending')), models.Q(models.Q(('status', 'pending'), _negated=True), ('due_at__isnull', True), ('settled_at__isnull', False)), _connector='OR'), name='payment_waits_or_is_settled'),
        ),
    ]
