"""How tenants pay and stand, their wallets, and what leases have set aside of them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0025_own_prices'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.AddField(
            model_name='hold',
            name='covers_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='Wallet',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('currency', models.CharField(max_length=3)),
                ('taken_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='WalletPart',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('spent_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('hold', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='wallet_parts', to='billing.hold')),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.billingperiod')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
                ('wallet', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='billing.wallet')),
            ],
        ),
        migrations.CreateModel(
            name='TenantTerms',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('payment', models.CharField(choices=[('invoice', 'Invoice'), ('prepaid', 'Prepaid')], default='invoice', max_length=8)),
                ('standing', models.CharField(choices=[('good', 'Good'), ('grace', 'Grace'), ('suspended', 'Suspended')], default='good', max_length=9)),
                ('why', models.CharField(blank=True, default='', max_length=200)),
                ('since', models.DateTimeField()),
                ('version', models.PositiveIntegerField(default=1)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='terms_once_a_tenant'), models.CheckConstraint(condition=models.Q(('payment__in', ['invoice', 'prepaid'])), name='terms_payment_known'), models.CheckConstraint(condition=models.Q(('standing__in', ['good', 'grace', 'suspended'])), name='terms_standing_known')],
            },
        ),
        migrations.AddConstraint(
            model_name='wallet',
            constraint=models.UniqueConstraint(fields=('tenant',), name='wallet_once_a_tenant'),
        ),
        migrations.AddConstraint(
            model_name='wallet',
            constraint=models.CheckConstraint(condition=models.Q(('taken_num__gte', 0)), name='wallet_adds_up'),
        ),
        migrations.AddConstraint(
            model_name='walletpart',
            constraint=models.UniqueConstraint(fields=('tenant', 'hold', 'period'), name='wallet_part_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='walletpart',
            constraint=models.CheckConstraint(condition=models.Q(('num__gte', models.F('spent_num')), ('spent_num__gte', 0)), name='wallet_part_covers'),
        ),
    ]
