"""Telemetry of GPUs: slots, batches, samples, minutes and hours."""

from pathlib import Path

import django.contrib.postgres.fields.ranges
import django.db.models.deletion
from django.db import migrations, models


SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    """Create what telemetry is stored in."""

    dependencies = [
        ('broker', '0014_live_leases'),
    ]

    operations = [
        migrations.CreateModel(
            name='GpuHour',
            fields=[
                ('pk', models.CompositePrimaryKey('slot_id', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('energy_mj', models.BigIntegerField(null=True)),
                ('memory_used_mib', models.IntegerField(null=True)),
                ('power_dw', models.IntegerField(null=True)),
                ('throttle_reasons', models.IntegerField(null=True)),
                ('engine_active', models.SmallIntegerField(null=True)),
                ('sm_active', models.SmallIntegerField(null=True)),
                ('tensor_active', models.SmallIntegerField(null=True)),
                ('dram_active', models.SmallIntegerField(null=True)),
                ('temperature_c', models.SmallIntegerField(null=True)),
                ('memory_max_mib', models.IntegerField(null=True)),
                ('engine_max', models.SmallIntegerField(null=True)),
                ('samples', models.SmallIntegerField()),
                ('throttled_samples', models.SmallIntegerField()),
            ],
            options={
                'db_table': 'broker_gpuhour',
                'abstract': False,
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='GpuMinute',
            fields=[
                ('pk', models.CompositePrimaryKey('slot_id', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('energy_mj', models.BigIntegerField(null=True)),
                ('memory_used_mib', models.IntegerField(null=True)),
                ('power_dw', models.IntegerField(null=True)),
                ('throttle_reasons', models.IntegerField(null=True)),
                ('engine_active', models.SmallIntegerField(null=True)),
                ('sm_active', models.SmallIntegerField(null=True)),
                ('tensor_active', models.SmallIntegerField(null=True)),
                ('dram_active', models.SmallIntegerField(null=True)),
                ('temperature_c', models.SmallIntegerField(null=True)),
                ('memory_max_mib', models.IntegerField(null=True)),
                ('engine_max', models.SmallIntegerField(null=True)),
                ('samples', models.SmallIntegerField()),
                ('throttled_samples', models.SmallIntegerField()),
            ],
            options={
                'db_table': 'broker_gpuminute',
                'abstract': False,
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='GpuSample',
            fields=[
                ('pk', models.CompositePrimaryKey('slot_id', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('energy_mj', models.BigIntegerField(null=True)),
                ('memory_used_mib', models.IntegerField(null=True)),
                ('power_dw', models.IntegerField(null=True)),
                ('throttle_reasons', models.IntegerField(null=True)),
                ('engine_active', models.SmallIntegerField(null=True)),
                ('sm_active', models.SmallIntegerField(null=True)),
                ('tensor_active', models.SmallIntegerField(null=True)),
                ('dram_active', models.SmallIntegerField(null=True)),
                ('temperature_c', models.SmallIntegerField(null=True)),
                ('pcie_rx_kib', models.IntegerField(null=True)),
                ('pcie_tx_kib', models.IntegerField(null=True)),
                ('sm_clock_mhz', models.SmallIntegerField(null=True)),
            ],
            options={
                'db_table': 'broker_gpusample',
                'abstract': False,
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='GpuSlot',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('placement', django.contrib.postgres.fields.ranges.IntegerRangeField()),
                ('gpu', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='broker.gpu')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('gpu', 'placement'), name='slot_once_per_gpu')],
            },
        ),
        migrations.CreateModel(
            name='SampleBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('boot_id', models.CharField(max_length=64)),
                ('seq', models.BigIntegerField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('received_at', models.DateTimeField()),
                ('samples', models.PositiveIntegerField()),
                ('rolled_up', models.BooleanField(default=False)),
                ('node', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='broker.node')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('rolled_up', False)), fields=['last_at'], name='batch_not_rolled_up')],
                'constraints': [models.UniqueConstraint(fields=('node', 'boot_id', 'seq'), name='batch_once')],
            },
        ),
        migrations.RunSQL((SQL / "telemetry.sql").read_text(), (SQL / "telemetry_reverse.sql").read_text()),
    ]
