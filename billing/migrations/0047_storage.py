"""How far the steps of a tenant's volumes are charged, beside how far its leases' transitions are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0046_refund_walls"), ("broker", "0030_volume_steps")]

    operations = [
        migrations.AddField(
            model_name="ratingmark", name="storage_xid", field=models.BigIntegerField(null=True)
        ),
    ]
