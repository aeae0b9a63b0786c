"""What is corrected is its tenant's; what was proposed never changes, and what was booked is only added to."""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

STAYS = """
CREATE TRIGGER proposal_stays BEFORE UPDATE ON billing_correction FOR EACH ROW
  WHEN (OLD.status IN ('booked', 'withdrawn') OR
        (NEW.id, NEW.kind, NEW.lease_id, NEW.charge, NEW.price_version_id, NEW.nano_per_hour, NEW.currency, NEW.since,
         NEW.until, NEW.reason, NEW.minor, NEW.limit_minor, NEW.seal, NEW.author_id, NEW.author, NEW.proposed_at)
        IS DISTINCT FROM
        (OLD.id, OLD.kind, OLD.lease_id, OLD.charge, OLD.price_version_id, OLD.nano_per_hour, OLD.currency, OLD.since,
         OLD.until, OLD.reason, OLD.minor, OLD.limit_minor, OLD.seal, OLD.author_id, OLD.author, OLD.proposed_at)
        OR (OLD.approver_id IS NOT NULL AND NEW.approver_id IS DISTINCT FROM OLD.approver_id)
        OR (OLD.second_approver_id IS NOT NULL AND NEW.second_approver_id IS DISTINCT FROM OLD.second_approver_id))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER correction_stays BEFORE DELETE ON billing_correction
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER diff_stays BEFORE UPDATE ON billing_correctionshare FOR EACH ROW
  WHEN (OLD.status <> 'waiting' OR
        (NEW.id, NEW.tenant_id, NEW.correction_id, NEW.diff, NEW.seal, NEW.minor)
        IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.correction_id, OLD.diff, OLD.seal, OLD.minor))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER share_stays BEFORE DELETE ON billing_correctionshare
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0043_corrections"), ("tenants", "0008_makers")]
    operations = [
        tenant_wall("billing_correctionshare"),
        tenant_wall("billing_correctionpart"),
        append_only("billing_correctionpart"),
        migrations.RunSQL(
            STAYS,
            "DROP TRIGGER share_stays ON billing_correctionshare; DROP TRIGGER diff_stays ON billing_correctionshare;"
            " DROP TRIGGER correction_stays ON billing_correction; DROP TRIGGER proposal_stays ON billing_correction;",
        ),
    ]
