"""No invoice becomes final whose tax nobody decided; a rate may be corrected until one was taxed by it; and what a
correction changes of a lease is its own tenant's.
"""

from django.db import migrations, models

# Several releases run at once during an upgrade, and one that knows nothing of tax writes neither party. Where a tenant
# has said who it is, or any rate is kept, a month that it closes stays a draft until a newer one comes to it.
DECIDED = """
CREATE FUNCTION refuse_undecided_tax() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.supplier IS NULL) <> (NEW.treatment = '')
     OR NEW.customer IS NULL AND (EXISTS (SELECT FROM billing_billingdetails d WHERE d.tenant_id = NEW.tenant_id)
                                  OR EXISTS (SELECT FROM billing_taxrate)) THEN
    RAISE EXCEPTION 'nobody has decided how invoice % is taxed', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_decided';
  END IF;
  IF EXISTS (SELECT FROM billing_invoicetax t JOIN billing_taxrate r ON r.id = t.rate_id
              WHERE t.invoice_id = NEW.id AND t.rate_bp IS DISTINCT FROM r.rate_bp) THEN
    RAISE EXCEPTION 'a rate of tax was corrected since invoice % was made', NEW.id
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_at_its_rate';
  END IF;
  UPDATE billing_taxrate r SET used = true
   WHERE NOT r.used AND r.id IN (SELECT t.rate_id FROM billing_invoicetax t WHERE t.invoice_id = NEW.id);
  RETURN NEW;
END $$;
CREATE TRIGGER taxed_decidedly BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.status IN ('draft', 'closing') AND NEW.status NOT IN ('draft', 'closing', 'void'))
  EXECUTE FUNCTION refuse_undecided_tax();
"""
NOT_DECIDED = "DROP TRIGGER taxed_decidedly ON billing_invoice; DROP FUNCTION refuse_undecided_tax();"
RATES = """
CREATE OR REPLACE FUNCTION refuse_tax_rate_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.id, NEW.jurisdiction, NEW.category, lower(NEW.valid))
       IS DISTINCT FROM (OLD.id, OLD.jurisdiction, OLD.category, lower(OLD.valid)){corrected} THEN
    RAISE EXCEPTION 'a rate of tax is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""
CORRECTED = """
     OR OLD.used AND (NEW.rate_bp, NEW.used) IS DISTINCT FROM (OLD.rate_bp, OLD.used)"""
NEVER = " OR NEW.rate_bp <> OLD.rate_bp"
# The owner reads every tenant's invoices for a moment, and nobody else does.
SO_FAR = """
ALTER TABLE billing_invoice NO FORCE ROW LEVEL SECURITY;
ALTER TABLE billing_invoicetax NO FORCE ROW LEVEL SECURITY;
UPDATE billing_taxrate SET used = true WHERE id IN (
  SELECT t.rate_id FROM billing_invoicetax t JOIN billing_invoice i ON i.id = t.invoice_id WHERE i.number IS NOT NULL);
ALTER TABLE billing_invoicetax FORCE ROW LEVEL SECURITY;
ALTER TABLE billing_invoice FORCE ROW LEVEL SECURITY;
"""
OWN = """
CREATE FUNCTION refuse_foreign_share() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM billing_correction c WHERE c.id = NEW.correction_id AND c.kind = 'lease'
                AND NOT EXISTS (SELECT FROM broker_lease l WHERE l.id = c.lease_id AND l.tenant_id = NEW.tenant_id)) THEN
    RAISE EXCEPTION 'a correction of a lease is of its own tenant' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER of_its_own_tenant BEFORE INSERT ON billing_correctionshare
  FOR EACH ROW EXECUTE FUNCTION refuse_foreign_share();
"""
NOT_OWN = "DROP TRIGGER of_its_own_tenant ON billing_correctionshare; DROP FUNCTION refuse_foreign_share();"


class Migration(migrations.Migration):
    dependencies = [("billing", "0051_turns_and_troubles"), ("broker", "0028_ill_since")]
    operations = [
        migrations.AddField(
            model_name="taxrate",
            name="used",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(SO_FAR, migrations.RunSQL.noop),
        migrations.RunSQL(RATES.format(corrected=CORRECTED), RATES.format(corrected=NEVER)),
        migrations.RunSQL(DECIDED, NOT_DECIDED),
        migrations.RunSQL(OWN, NOT_OWN),
    ]
