"""A dispute is its tenant's, ends once, and keeps its history; what an invoice says of its window stays so."""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

ENDS_ONCE = """
CREATE TRIGGER dispute_ends_once BEFORE UPDATE ON billing_dispute FOR EACH ROW
  WHEN (OLD.status <> 'open' OR
        (NEW.id, NEW.tenant_id, NEW.invoice_id, NEW.line_id, NEW.minor, NEW.tax_minor, NEW.currency, NEW.reason,
         NEW.opened_at, NEW.opened_by)
        IS DISTINCT FROM
        (OLD.id, OLD.tenant_id, OLD.invoice_id, OLD.line_id, OLD.minor, OLD.tax_minor, OLD.currency, OLD.reason,
         OLD.opened_at, OLD.opened_by))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER dispute_stays BEFORE DELETE ON billing_dispute FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER window_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.number IS NOT NULL AND NEW.disputable_until IS DISTINCT FROM OLD.disputable_until)
  EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0036_disputes"), ("tenants", "0008_makers")]
    operations = [
        tenant_wall("billing_dispute"),
        tenant_wall("billing_disputestep"),
        append_only("billing_disputestep"),
        migrations.RunSQL(
            ENDS_ONCE,
            "DROP TRIGGER window_stays ON billing_invoice; DROP TRIGGER dispute_stays ON billing_dispute;"
            " DROP TRIGGER dispute_ends_once ON billing_dispute;",
        ),
    ]
