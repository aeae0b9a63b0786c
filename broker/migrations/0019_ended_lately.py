"""What ended lately is asked for by every look at the control room: its hours and its revenue."""

from django.db import migrations

INDEX = "CREATE INDEX transition_active_end ON broker_transition (at) WHERE before = 'active';"


class Migration(migrations.Migration):
    dependencies = [("broker", "0018_entrances")]

    operations = [migrations.RunSQL(INDEX, "DROP INDEX transition_active_end;")]
