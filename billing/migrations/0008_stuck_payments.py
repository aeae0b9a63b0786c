"""A payment that waits for a person is not settled: it is stuck."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0007_collected'),
        ('tenants', '0007_storage_quota'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='payment',
            name='one_payment_per_invoice',
        ),
        migrations.RemoveConstraint(
            model_name='payment',
            name='payment_status_known',
        ),
        migrations.RemoveConstraint(
            model_name='payment',
            name='payment_waits_or_is_settled',
        ),
        migrations.AddField(
            model_name='payment',
            name='fell',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='payment',
            name='stuck_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='payment',
            name='status',
            field=models.CharField(choices=[('pending', 'Pending'), ('stuck', 'Stuck'), ('succeeded', 'Succeeded'), ('declined', 'Declined')], default='pending', max_length=9),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('status', 'stuck')), fields=['stuck_at'], name='payment_stuck'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ['pending', 'stuck', 'succeeded'])), fields=('invoice',), name='one_payment_per_invoice'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'stuck', 'succeeded', 'declined'])), name='payment_status_known'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', False), ('settled_at__isnull', True), ('status', 'pending')), models.Q(('due_at__isnull', True), ('settled_at__isnull', True), ('status', 'stuck')), models.Q(models.Q(('status__in', ('pending', 'stuck')), _negated=True), ('due_at__isnull', True), ('settled_at__isnull', False)), _connector='OR'), name='payment_waits_or_is_settled'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'stuck'), ('stuck_at__isnull', False)), models.Q(models.Q(('status', 'stuck'), _negated=True), ('stuck_at__isnull', True)), _connector='OR'), name='payment_stuck_since'),
        ),
    ]
