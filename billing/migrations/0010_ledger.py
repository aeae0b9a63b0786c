"""The ledger: accounts, transfers between them, what they come to, and the seals of their chain."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0009_payment_holds_invoice'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='LedgerAccount',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('receivable', 'receivable'), ('wallet_paid', 'wallet_paid'), ('wallet_promo', 'wallet_promo'), ('accrued', 'accrued'), ('revenue', 'revenue'), ('tax_payable', 'tax_payable'), ('slo_expense', 'slo_expense'), ('cash', 'cash'), ('breakage', 'breakage'), ('fx', 'fx')], max_length=12)),
                ('currency', models.CharField(max_length=3)),
                ('ref', models.CharField(blank=True, db_default='', default='', max_length=40)),
                ('opened_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='LedgerSeal',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('n', models.PositiveBigIntegerField()),
                ('day', models.DateField()),
                ('transfers', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('before', models.BinaryField()),
                ('hash', models.BinaryField()),
                ('sealed_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='LedgerTransfer',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('tenant_id', models.CharField(max_length=40)),
                ('currency', models.CharField(max_length=3)),
                ('minor', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('kind', models.CharField(choices=[('invoice', 'Invoice'), ('payment', 'Payment'), ('void', 'Void')], max_length=20)),
                ('ref', models.CharField(max_length=40)),
                ('reverses_id', models.BigIntegerField(null=True)),
                ('idem', models.CharField(db_collation='C', max_length=120)),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('credit_account', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='credits', to='billing.ledgeraccount')),
                ('debit_account', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='debits', to='billing.ledgeraccount')),
            ],
        ),
        migrations.CreateModel(
            name='AccountBalance',
            fields=[
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='balance', serialize=False, to='billing.ledgeraccount')),
                ('minor', models.BigIntegerField(default=0)),
                ('held_minor', models.BigIntegerField(db_default=0, default=0)),
                ('floor', models.BigIntegerField(null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddConstraint(
            model_name='ledgeraccount',
            constraint=models.UniqueConstraint(fields=('tenant', 'type', 'currency', 'ref'), name='ledger_account_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='ledgeraccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('tenant__isnull', False), ('type__in', ['accrued', 'receivable', 'wallet_paid', 'wallet_promo'])), models.Q(('tenant__isnull', True), ('type__in', ['breakage', 'cash', 'fx', 'revenue', 'slo_expense', 'tax_payable'])), _connector='OR'), name='ledger_account_is_somebodys'),
        ),
        migrations.AddIndex(
            model_name='ledgerseal',
            index=models.Index(fields=['sealed_at'], name='sealed_lately'),
        ),
        migrations.AddConstraint(
            model_name='ledgerseal',
            constraint=models.UniqueConstraint(fields=('tenant', 'n'), name='seal_once'),
        ),
        migrations.AddIndex(
            model_name='ledgertransfer',
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['recorded_at'], name='transfer_recorded'),
        ),
        migrations.AddConstraint(
            model_name='ledgertransfer',
            constraint=models.UniqueConstraint(fields=('idem',), name='transfer_once'),
        ),
        migrations.AddConstraint(
            model_name='ledgertransfer',
            constraint=models.UniqueConstraint(condition=models.Q(('reverses_id__isnull', False)), fields=('tenant_id', 'reverses_id'), name='transfer_reversed_once'),
        ),
        migrations.AddConstraint(
            model_name='ledgertransfer',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='transfer_of_something'),
        ),
        migrations.AddConstraint(
            model_name='ledgertransfer',
            constraint=models.CheckConstraint(condition=models.Q(('debit_account', models.F('credit_account')), _negated=True), name='transfer_between_two'),
        ),
        migrations.AddConstraint(
            model_name='accountbalance',
            constraint=models.CheckConstraint(condition=models.Q(('floor__isnull', True), ('minor__gte', django.db.models.expressions.CombinedExpression(models.F('floor'), '+', models.F('held_minor'))), _connector='OR'), name='balance_above_its_floor'),
        ),
        migrations.AddConstraint(
            model_name='accountbalance',
            constraint=models.CheckConstraint(condition=models.Q(('held_minor__gte', 0)), name='balance_holds_no_less_than_nothing'),
        ),
    ]
