"""Drop what Django adds to every text key for LIKE 'prefix%': nobody looks for half an id, and each costs a write."""

from django.db import migrations

DROP = r"""
DO $$
DECLARE each record;
BEGIN
  FOR each IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'broker\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', each.indexname);
  END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("broker", "0006_what_mattered_lately")]
    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
