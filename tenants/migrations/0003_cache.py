"""Django's database cache (sign-in rate limits). Unlogged: its loss costs nothing."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_walls")]
    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE cache (cache_key varchar(255) PRIMARY KEY, value text NOT NULL,
                                         expires timestamptz NOT NULL);
            CREATE INDEX cache_expires ON cache (expires);
            """,
            "DROP TABLE cache;",
        ),
    ]
