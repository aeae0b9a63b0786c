"""What should have been charged otherwise: proposed, approved by others, and in the key of what it charges."""

import billing.models.keys
import django.db.models.deletion
from django.db import migrations, models


KEY = ["lease_id", "seq", "price_version_id", "period_id", "meter", "kind", "part"]


def keyed(columns: list[str]) -> str:
    """Write how the key becomes these columns; Django alters no key of several columns by itself."""
    return (
        "ALTER TABLE billing_ratedcharge DROP CONSTRAINT billing_ratedcharge_pkey,"
        f" ADD PRIMARY KEY ({', '.join(columns)});"
    )


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0042_token_caps'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='Correction',
            fields=[
                ('id', models.CharField(default=billing.models.keys.correction_id, max_length=40, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('lease', 'Lease'), ('price', 'Price')], max_length=5)),
                ('lease_id', models.CharField(blank=True, default='', max_length=40)),
                ('charge', models.BooleanField(default=False)),
                ('nano_per_hour', models.BigIntegerField(null=True)),
                ('currency', models.CharField(max_length=3)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('reason', models.CharField(max_length=200)),
                ('minor', models.BigIntegerField()),
                ('limit_minor', models.BigIntegerField()),
                ('seal', models.CharField(max_length=64)),
                ('status', models.CharField(choices=[('proposed', 'Proposed'), ('approved', 'Approved'), ('booked', 'Booked'), ('withdrawn', 'Withdrawn')], default='proposed', max_length=9)),
                ('author_id', models.CharField(max_length=40)),
                ('author', models.CharField(max_length=254)),
                ('proposed_at', models.DateTimeField()),
                ('approver_id', models.CharField(max_length=40, null=True)),
                ('approver', models.CharField(blank=True, default='', max_length=254)),
                ('approved_at', models.DateTimeField(null=True)),
                ('second_approver_id', models.CharField(max_length=40, null=True)),
                ('second_approver', models.CharField(blank=True, default='', max_length=254)),
                ('second_approved_at', models.DateTimeField(null=True)),
                ('closed_at', models.DateTimeField(null=True)),
                ('price_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.priceversion')),
            ],
        ),
        migrations.CreateModel(
            name='CorrectionShare',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('diff', models.JSONField()),
                ('seal', models.CharField(max_length=64)),
                ('minor', models.BigIntegerField()),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('booked', 'Booked'), ('outdated', 'Outdated')], default='waiting', max_length=8)),
                ('settled_at', models.DateTimeField(null=True)),
                ('trouble', models.CharField(blank=True, default='', max_length=300)),
                ('correction', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='shares', to='billing.correction')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='CorrectionPart',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('n', models.PositiveIntegerField()),
                ('lease_id', models.CharField(max_length=40)),
                ('seq', models.PositiveIntegerField()),
                ('price_version_id', models.BigIntegerField()),
                ('period_id', models.BigIntegerField()),
                ('billed_period_id', models.BigIntegerField()),
                ('project_id', models.CharField(max_length=40)),
                ('offering_id', models.CharField(max_length=40)),
                ('s', models.DateTimeField()),
                ('e', models.DateTimeField()),
                ('quantity', models.PositiveIntegerField()),
                ('nano_per_hour', models.BigIntegerField()),
                ('unit_seconds', models.BigIntegerField()),
                ('exact_num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('final', models.BooleanField()),
                ('share', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='billing.correctionshare')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='ratedcharge',
            name='charge_has_seconds',
        ),
        migrations.AddField(
            model_name='creditnote',
            name='correction_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.AddField(
            model_name='ratedcharge',
            name='correction_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(keyed([*KEY, "correction_id"]), keyed(KEY))],
            state_operations=[
                migrations.AlterField(
                    model_name='ratedcharge',
                    name='pk',
                    field=models.CompositePrimaryKey('lease_id', 'seq', 'price_version_id', 'period_id', 'meter', 'kind', 'part', 'correction_id', blank=True, editable=False, primary_key=True, serialize=False),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name='creditnote',
            constraint=models.UniqueConstraint(condition=models.Q(('correction_id', ''), _negated=True), fields=('invoice', 'correction_id'), name='correction_credited_once'),
        ),
        migrations.AddConstraint(
            model_name='ratedcharge',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('correction_id', ''), ('kind', 'usage'), ('unit_seconds__gt', 0)), models.Q(('correction_id', ''), ('exact_num__lte', 0), ('kind', 'adjust'), ('unit_seconds__lt', 0)), models.Q(models.Q(models.Q(('exact_num__lte', 0), ('unit_seconds__lt', 0)), models.Q(('exact_num__gte', 0), ('unit_seconds__gt', 0)), _connector='OR'), models.Q(('correction_id', ''), _negated=True), ('kind', 'adjust')), _connector='OR'), name='charge_has_seconds'),
        ),
        migrations.AddConstraint(
            model_name='correction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('approver_id', None), models.Q(('approver_id', models.F('author_id')), _negated=True), _connector='OR'), models.Q(('second_approver_id', None), models.Q(models.Q(('second_approver_id', models.F('author_id')), _negated=True), models.Q(('second_approver_id', models.F('approver_id')), _negated=True)), _connector='OR')), name='correction_by_different_people'),
        ),
        migrations.AddConstraint(
            model_name='correction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['approved', 'booked']), _negated=True), models.Q(('approver_id__isnull', False), models.Q(('minor__lt', models.F('limit_minor')), ('second_approver_id__isnull', False), _connector='OR')), _connector='OR'), name='correction_is_approved_first'),
        ),
        migrations.AddConstraint(
            model_name='correction',
            constraint=models.CheckConstraint(condition=models.Q(('second_approver_id', None), ('approver_id__isnull', False), _connector='OR'), name='correction_first_before_second'),
        ),
        migrations.AddConstraint(
            model_name='correction',
            constraint=models.CheckConstraint(condition=models.Q(('since__lt', models.F('until'))), name='correction_of_some_time'),
        ),
        migrations.AddConstraint(
            model_name='correction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'lease'), ('nano_per_hour', None), ('price_version', None), models.Q(('lease_id', ''), _negated=True)), models.Q(('kind', 'price'), ('lease_id', ''), ('nano_per_hour__gte', 0), ('price_version__isnull', False)), _connector='OR'), name='correction_of_one_thing'),
        ),
        migrations.AddConstraint(
            model_name='correctionshare',
            constraint=models.UniqueConstraint(fields=('correction', 'tenant'), name='correction_once_a_tenant'),
        ),
        migrations.AddConstraint(
            model_name='correctionshare',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('settled_at', None), ('status', 'waiting')), models.Q(models.Q(('status', 'waiting'), _negated=True), models.Q(('settled_at', None), _negated=True)), _connector='OR'), name='share_settled_at_a_moment'),
        ),
        migrations.AddIndex(
            model_name='correctionpart',
            index=models.Index(fields=['lease_id'], name='correction_of_lease'),
        ),
        migrations.AddConstraint(
            model_name='correctionpart',
            constraint=models.UniqueConstraint(fields=('tenant', 'share', 'n'), name='correction_part_once'),
        ),
        migrations.AddConstraint(
            model_name='correctionpart',
            constraint=models.CheckConstraint(condition=models.Q(('s__lt', models.F('e'))), name='correction_part_of_some_time'),
        ),
    ]
