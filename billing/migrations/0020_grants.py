"""Grants, what they paid of invoices, what came back to them and what lapsed; and an account for what is given away."""

import billing.models.keys
import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0019_tax_walls'),
        ('broker', '0027_held_once_free'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.CharField(default=billing.models.keys.grant_id, max_length=40, primary_key=True, serialize=False)),
                ('currency', models.CharField(max_length=3)),
                ('minor', models.BigIntegerField()),
                ('priority', models.PositiveSmallIntegerField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('source', models.CharField(choices=[('operator', 'Operator'), ('breach', 'Breach'), ('coupon', 'Coupon')], max_length=10)),
                ('reason', models.CharField(max_length=200)),
                ('idem', models.CharField(max_length=120)),
                ('given_at', models.DateTimeField()),
                ('given_by', models.CharField(max_length=40)),
                ('offering', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.offering')),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.project')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='GrantDraw',
            fields=[
                ('id', models.CharField(default=billing.models.keys.draw_id, max_length=40, primary_key=True, serialize=False)),
                ('minor', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('grant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='draws', to='billing.grant')),
                ('invoice', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grant_draws', to='billing.invoice')),
                ('line', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.invoiceline')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='GrantLapse',
            fields=[
                ('id', models.CharField(default=billing.models.keys.lapse_id, max_length=40, primary_key=True, serialize=False)),
                ('minor', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('grant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='lapse', to='billing.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='GrantReturn',
            fields=[
                ('id', models.CharField(default=billing.models.keys.return_id, max_length=40, primary_key=True, serialize=False)),
                ('minor', models.BigIntegerField()),
                ('lapsed', models.BooleanField()),
                ('credit_note', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grant_returns', to='billing.creditnote')),
                ('grant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='returns', to='billing.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='ledgeraccount',
            name='ledger_account_is_somebodys',
        ),
        migrations.AddField(
            model_name='creditnote',
            name='to_grants',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='ledgeraccount',
            name='type',
            field=models.CharField(choices=[('receivable', 'receivable'), ('wallet_paid', 'wallet_paid'), ('wallet_promo', 'wallet_promo'), ('accrued', 'accrued'), ('revenue', 'revenue'), ('tax_payable', 'tax_payable'), ('slo_expense', 'slo_expense'), ('promotion', 'promotion'), ('cash', 'cash'), ('breakage', 'breakage'), ('fx', 'fx')], max_length=12),
        ),
        migrations.AlterField(
            model_name='ledgertransfer',
            name='kind',
            field=models.CharField(choices=[('invoice', 'Invoice'), ('payment', 'Payment'), ('void', 'Void'), ('credit', 'Credit'), ('draw', 'Draw'), ('grant', 'Grant'), ('lapse', 'Lapse')], max_length=20),
        ),
        migrations.AddConstraint(
            model_name='creditnote',
            constraint=models.CheckConstraint(condition=models.Q(('to_grants__gte', 0), ('to_grants__lte', django.db.models.expressions.CombinedExpression(models.F('total'), '-', models.F('off_due')))), name='credit_to_grants_is_a_part'),
        ),
        migrations.AddConstraint(
            model_name='ledgeraccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('tenant__isnull', False), ('type__in', ['accrued', 'receivable', 'wallet_paid', 'wallet_promo'])), models.Q(('tenant__isnull', True), ('type__in', ['breakage', 'cash', 'fx', 'promotion', 'revenue', 'slo_expense', 'tax_payable'])), _connector='OR'), name='ledger_account_is_somebodys'),
        ),
        migrations.AddIndex(
            model_name='grant',
            index=models.Index(fields=['expires_at'], name='grant_ends'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.UniqueConstraint(fields=('tenant', 'idem'), name='grant_given_once'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='grant_of_something'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at__isnull', True), ('expires_at__gt', models.F('given_at')), _connector='OR'), name='grant_lasts_a_while'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.CheckConstraint(condition=models.Q(('source__in', ['operator', 'breach', 'coupon'])), name='grant_source_known'),
        ),
        migrations.AddConstraint(
            model_name='grantdraw',
            constraint=models.UniqueConstraint(fields=('grant', 'line'), name='grant_draws_once_a_line'),
        ),
        migrations.AddConstraint(
            model_name='grantdraw',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='grant_draw_of_something'),
        ),
        migrations.AddConstraint(
            model_name='grantlapse',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gte', 0)), name='grant_lapse_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='grantreturn',
            constraint=models.UniqueConstraint(fields=('credit_note', 'grant'), name='grant_returned_once_a_note'),
        ),
        migrations.AddConstraint(
            model_name='grantreturn',
            constraint=models.CheckConstraint(condition=models.Q(('minor__gt', 0)), name='grant_return_of_something'),
        ),
    ]
