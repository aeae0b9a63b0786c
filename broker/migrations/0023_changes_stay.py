"""Out-of-service hours are counted from these changes: nobody alters one, not even the tables' owner."""

from django.db import migrations

from tenants.models.walls import append_only


class Migration(migrations.Migration):
    dependencies = [("broker", "0022_links")]
    operations = [append_only("broker_inventorychange")]
