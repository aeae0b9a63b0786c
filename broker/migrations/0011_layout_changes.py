"""Cutting nodes anew: the changes, the ledger of their steps, the cards they close, and simulated nodes to cut."""

import broker.models.keys
import django.db.models.deletion
from django.db import migrations, models

from tenants.models.walls import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('broker', '0011_lease_workloads'),
    ]

    operations = [
        migrations.CreateModel(
            name='SimulatedNode',
            fields=[
                ('node', models.CharField(max_length=40, primary_key=True, serialize=False)),
                ('config', models.CharField(blank=True, default='', max_length=63)),
                ('told_at', models.DateTimeField(null=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('tainted', models.BooleanField(default=False)),
                ('known', models.JSONField(default=dict)),
                ('cuts', models.JSONField(default=dict)),
                ('ills', models.JSONField(default=list)),
                ('ill', models.CharField(blank=True, default='', max_length=10)),
            ],
        ),
        migrations.AddField(
            model_name='cluster',
            name='recuts',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='gpu',
            name='closed_since',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='LayoutChange',
            fields=[
                ('id', models.CharField(default=broker.models.keys.layout_change_id, max_length=40, primary_key=True, serialize=False)),
                ('wanted', models.JSONField()),
                ('before', models.JSONField()),
                ('gain_milli', models.IntegerField(default=0)),
                ('step', models.CharField(default='planned', max_length=12)),
                ('step_at', models.DateTimeField()),
                ('seq', models.PositiveIntegerField(default=0)),
                ('why', models.CharField(blank=True, default='', max_length=200)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('planned_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='layout_changes', to='broker.node')),
            ],
        ),
        migrations.CreateModel(
            name='LayoutStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.PositiveIntegerField()),
                ('step', models.CharField(max_length=12)),
                ('at', models.DateTimeField()),
                ('why', models.CharField(blank=True, default='', max_length=200)),
                ('actor_label', models.CharField(blank=True, default='', max_length=254)),
                ('change', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='broker.layoutchange')),
            ],
        ),
        migrations.AddIndex(
            model_name='layoutchange',
            index=models.Index(fields=['node', 'planned_at'], name='layout_change_of_node'),
        ),
        migrations.AddIndex(
            model_name='layoutchange',
            index=models.Index(condition=models.Q(('step__in', ['cancelled', 'done', 'quarantined']), _negated=True), fields=['due_at'], name='layout_change_due'),
        ),
        migrations.AddConstraint(
            model_name='layoutchange',
            constraint=models.UniqueConstraint(condition=models.Q(('step__in', ['cancelled', 'done', 'quarantined']), _negated=True), fields=('node',), name='one_layout_change_per_node'),
        ),
        migrations.AddConstraint(
            model_name='layoutchange',
            constraint=models.CheckConstraint(condition=models.Q(('step__in', ['planned', 'closing', 'draining', 'labelling', 'cutting', 'nudging', 'opening', 'done', 'quarantined', 'cancelling', 'cancelled'])), name='layout_change_step_known'),
        ),
        migrations.AddConstraint(
            model_name='layoutstep',
            constraint=models.UniqueConstraint(fields=('change', 'seq'), name='layout_step_once'),
        ),
        append_only("broker_layoutstep"),
    ]
