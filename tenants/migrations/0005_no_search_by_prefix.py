"""Drop what Django adds to every text key for LIKE 'prefix%': nobody looks for half an id, and each costs a write."""

from django.db import migrations

DROP = r"""
DO $$
DECLARE each record;
BEGIN
  FOR each IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'tenants\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', each.indexname);
  END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_doors")]
    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
