"""Kubernetes clusters: the way into each, sealed, and what its agent last saw."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('broker', '0009_quotas_count_from_birth'),
    ]

    operations = [
        migrations.CreateModel(
            name='ClusterCredential',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='credential', serialize=False, to='broker.cluster')),
                ('sealed', models.BinaryField()),
                ('updated_at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='cluster',
            name='address',
            field=models.CharField(blank=True, default='', max_length=300),
        ),
        migrations.AddField(
            model_name='cluster',
            name='driver',
            field=models.CharField(blank=True, default='', max_length=20),
        ),
        migrations.AddField(
            model_name='cluster',
            name='driver_options',
            field=models.JSONField(default=dict),
        ),
        migrations.CreateModel(
            name='ClusterObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=60)),
                ('namespace', models.CharField(blank=True, default='', max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('uid', models.CharField(max_length=40)),
                ('version', models.BigIntegerField()),
                ('order_name', models.CharField(blank=True, default='', max_length=63)),
                ('body', models.JSONField(default=dict)),
                ('seen_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='broker.cluster')),
            ],
            options={
                'indexes': [models.Index(fields=['cluster', 'order_name'], name='object_of_order')],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'kind', 'namespace', 'name'), name='object_once_per_cluster')],
            },
        ),
        migrations.CreateModel(
            name='ClusterWatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=60)),
                ('version', models.BigIntegerField()),
                ('synced_at', models.DateTimeField()),
                ('heard_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='watches', to='broker.cluster')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'kind'), name='watch_once_per_cluster')],
            },
        ),
        # Only whoever talks to the cluster reads the way in; the wider roles read everything else.
        migrations.RunSQL(
            "REVOKE ALL ON broker_clustercredential FROM gpubroker_staff, gpubroker_sweep, gpubroker_door",
            "GRANT SELECT ON broker_clustercredential TO gpubroker_staff, gpubroker_sweep, gpubroker_door",
        ),
    ]
