"""Walls around kept papers: each is of a final invoice, or of a credit note, of its own tenant, and never changes."""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

OWN = """
CREATE FUNCTION refuse_odd_paper() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM billing_invoice i
    WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id AND i.finalized_at IS NOT NULL
  UNION ALL
  SELECT FROM billing_creditnote n WHERE n.id = NEW.credit_note_id AND n.tenant_id = NEW.tenant_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a paper is kept of a final invoice, or of a credit note, of its tenant'
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'paper_of_its_tenant';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER of_its_tenant AFTER INSERT ON billing_keptpaper
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_paper();
"""
NOT_OWN = """
DROP TRIGGER of_its_tenant ON billing_keptpaper;
DROP FUNCTION refuse_odd_paper();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0022_kept_papers")]
    operations = [
        tenant_wall("billing_keptpaper"),
        append_only("billing_keptpaper"),
        migrations.RunSQL(OWN, NOT_OWN),
    ]
