"""Walls around money, and rows that never change once they count."""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

PRICES = """
CREATE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid))
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid)) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER price_is_immutable BEFORE UPDATE OR DELETE ON billing_priceversion
  FOR EACH ROW EXECUTE FUNCTION refuse_price_change();
"""
INVOICES = """
CREATE FUNCTION refuse_final_invoice_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status NOT IN ('draft', 'closing') AND (TG_OP = 'DELETE' OR
     (NEW.tenant_id, NEW.period_id, NEW.series, NEW.number, NEW.currency, NEW.total, NEW.finalized_at)
       IS DISTINCT FROM
     (OLD.tenant_id, OLD.period_id, OLD.series, OLD.number, OLD.currency, OLD.total, OLD.finalized_at)) THEN
    RAISE EXCEPTION 'invoice % is final', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER final_invoice BEFORE UPDATE OR DELETE ON billing_invoice
  FOR EACH ROW EXECUTE FUNCTION refuse_final_invoice_change();
CREATE FUNCTION refuse_final_line_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  invoice text := CASE WHEN TG_OP = 'DELETE' THEN OLD.invoice_id ELSE NEW.invoice_id END;
BEGIN
  IF EXISTS (SELECT FROM billing_invoice WHERE id = invoice AND status NOT IN ('draft', 'closing')) THEN
    RAISE EXCEPTION 'invoice % is final', invoice USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER final_line BEFORE INSERT OR UPDATE OR DELETE ON billing_invoiceline
  FOR EACH ROW EXECUTE FUNCTION refuse_final_line_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial"), ("tenants", "0002_walls")]
    operations = [
        tenant_wall("billing_billingperiod"),
        tenant_wall("billing_ratedcharge"),
        append_only("billing_ratedcharge"),
        tenant_wall("billing_invoice"),
        tenant_wall("billing_invoiceline"),
        migrations.RunSQL(
            PRICES, "DROP TRIGGER price_is_immutable ON billing_priceversion; DROP FUNCTION refuse_price_change();"
        ),
        migrations.RunSQL(
            INVOICES,
            "DROP TRIGGER final_line ON billing_invoiceline; DROP FUNCTION refuse_final_line_change();"
            "DROP TRIGGER final_invoice ON billing_invoice; DROP FUNCTION refuse_final_invoice_change();",
        ),
        migrations.RunSQL(
            "ALTER TABLE billing_ratedcharge ALTER COLUMN recorded_at SET DEFAULT clock_timestamp();",
            migrations.RunSQL.noop,
        ),
    ]
