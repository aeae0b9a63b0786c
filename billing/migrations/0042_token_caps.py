"""What tokens may spend at most; what a day has taken is the sum of what leases took of it."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from tenants.models.walls import tenant_wall


SUMS = """
CREATE FUNCTION count_token_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_tokenday d JOIN billing_tokenlease l ON l.cap_id = d.cap_id
                  WHERE d.id = NEW.day_id AND l.id = NEW.of_id AND d.tenant_id = NEW.tenant_id) THEN
    RAISE EXCEPTION 'a part is of a lease and of a day of one token' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.day_id, NEW.of_id, NEW.tenant_id) IS DISTINCT FROM (OLD.day_id, OLD.of_id, OLD.tenant_id) THEN
      RAISE EXCEPTION 'a part stays with its lease and its day' USING ERRCODE = 'restrict_violation';
    END IF;
    UPDATE billing_tokenday SET taken_num = taken_num + NEW.num - OLD.num WHERE id = NEW.day_id AND NEW.num <> OLD.num;
  ELSE
    UPDATE billing_tokenday SET taken_num = taken_num + NEW.num WHERE id = NEW.day_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER counted AFTER INSERT OR UPDATE ON billing_tokenpart FOR EACH ROW EXECUTE FUNCTION count_token_part();
"""
NO_SUMS = "DROP TRIGGER counted ON billing_tokenpart; DROP FUNCTION count_token_part();"


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0041_moves'),
        ('broker', '0028_ill_since'),
        ('tenants', '0008_makers'),
    ]

    operations = [
        migrations.CreateModel(
            name='TokenCap',
            fields=[
                ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='tenants.apitoken')),
                ('currency', models.CharField(max_length=3)),
                ('daily_minor', models.BigIntegerField(null=True)),
                ('total_minor', models.BigIntegerField(null=True)),
                ('offerings', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ('set_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='TokenDay',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('taken_num', models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ('cap', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='days', to='billing.tokencap')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='TokenLease',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('cap', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='billing.tokencap')),
                ('lease', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.lease')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='TokenPart',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('num', models.DecimalField(decimal_places=0, max_digits=38)),
                ('day', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='billing.tokenday')),
                ('of', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='billing.tokenlease')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.AddConstraint(
            model_name='tokencap',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('daily_minor__isnull', True), ('daily_minor__gte', 0), _connector='OR'), models.Q(('total_minor__isnull', True), ('total_minor__gte', 0), _connector='OR')), name='token_cap_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='tokenday',
            constraint=models.UniqueConstraint(fields=('tenant', 'cap', 'day'), name='token_day_once'),
        ),
        migrations.AddConstraint(
            model_name='tokenday',
            constraint=models.CheckConstraint(condition=models.Q(('taken_num__gte', 0)), name='token_day_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='tokenpart',
            constraint=models.UniqueConstraint(fields=('tenant', 'of', 'day'), name='token_part_once'),
        ),
        migrations.AddConstraint(
            model_name='tokenpart',
            constraint=models.CheckConstraint(condition=models.Q(('num__gte', 0)), name='token_part_not_negative'),
        ),
        tenant_wall("billing_tokencap"),
        tenant_wall("billing_tokenday"),
        tenant_wall("billing_tokenlease"),
        tenant_wall("billing_tokenpart"),
        migrations.RunSQL(SUMS, NO_SUMS),
    ]
