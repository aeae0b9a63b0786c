"""Terms that cannot be meant are refused, and so is whatever would change a month that is closed."""

from django.db import migrations

# Rules work in whole seconds, months and coins: a row that has none would stop its tenant's month.
MEANT = r"""
ALTER TABLE billing_minimum
  ADD CONSTRAINT minimum_lasts_whole_seconds CHECK ((
    NOT isempty(valid) AND isfinite(lower(valid)) AND lower_inc(valid) AND NOT upper_inc(valid)
    AND date_trunc('second', lower(valid)) = lower(valid)
    AND (upper(valid) IS NULL OR isfinite(upper(valid)) AND date_trunc('second', upper(valid)) = upper(valid))) IS TRUE),
  ADD CONSTRAINT minimum_of_what_there_is CHECK (minor <= 10 ^ 15);
ALTER TABLE billing_discount
  ADD CONSTRAINT discount_of_months CHECK (first_month ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$'
    AND (last_month IS NULL OR last_month ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$')),
  ADD CONSTRAINT discount_of_a_currency CHECK ((minor IS NULL) = (currency = '')),
  ADD CONSTRAINT discount_of_what_there_is CHECK (minor IS NULL OR minor <= 10 ^ 15);
ALTER TABLE billing_campaign
  ADD CONSTRAINT campaign_of_a_currency CHECK ((minor IS NULL) = (currency = '')),
  ADD CONSTRAINT campaign_of_what_there_is CHECK (minor IS NULL OR minor <= 10 ^ 15);
"""
ANYHOW = """
ALTER TABLE billing_campaign DROP CONSTRAINT campaign_of_a_currency, DROP CONSTRAINT campaign_of_what_there_is;
ALTER TABLE billing_discount DROP CONSTRAINT discount_of_months, DROP CONSTRAINT discount_of_a_currency,
  DROP CONSTRAINT discount_of_what_there_is;
ALTER TABLE billing_minimum DROP CONSTRAINT minimum_lasts_whole_seconds, DROP CONSTRAINT minimum_of_what_there_is;
"""
# Who looks at a tenant's months keeps them: whoever closes one of them has closed it by then, or finds the new terms.
MONTHS = """
CREATE FUNCTION refuse_terms_of_closed_months() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  month record;
  since text;
  until text;
BEGIN
  IF TG_OP = 'INSERT' THEN
    since := NEW.first_month;
    until := coalesce(NEW.last_month, 'for good');
  ELSE  -- it only ends
    since := greatest(NEW.first_month, to_char(to_date(NEW.last_month, 'YYYY-MM') + interval '1 month', 'YYYY-MM'));
    until := coalesce(OLD.last_month, 'for good');
  END IF;
  FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.label >= since AND p.label <= until ORDER BY p.span FOR SHARE LOOP
    IF month.status = 'closed' THEN
      RAISE EXCEPTION 'month % is closed, and stays as discounts were', month.label
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_discount
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_discount FOR EACH ROW
  WHEN (NEW.last_month IS DISTINCT FROM OLD.last_month) EXECUTE FUNCTION refuse_terms_of_closed_months();
CREATE FUNCTION refuse_spans_of_closed_months() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  month record;
  changed tstzrange := NEW.valid;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
      RAISE EXCEPTION '% % only ends', replace(TG_TABLE_NAME, 'billing_', ''), OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    changed := tstzrange(upper(NEW.valid), upper(OLD.valid));
  END IF;
  FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                WHERE p.tenant_id = NEW.tenant_id AND p.span && changed ORDER BY p.span FOR SHARE LOOP
    IF month.status = 'closed' THEN
      RAISE EXCEPTION 'month % is closed, and stays as it was agreed', month.label
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_minimum FOR EACH ROW
  WHEN (NEW.valid IS DISTINCT FROM OLD.valid) EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_commitment FOR EACH ROW
  WHEN (NEW.valid IS DISTINCT FROM OLD.valid) EXECUTE FUNCTION refuse_spans_of_closed_months();
"""
NO_MONTHS = """
DROP TRIGGER closed_months_stay_so ON billing_commitment;
DROP TRIGGER closed_months_stay ON billing_commitment;
DROP TRIGGER closed_months_stay_so ON billing_minimum;
DROP TRIGGER closed_months_stay ON billing_minimum;
DROP FUNCTION refuse_spans_of_closed_months();
DROP TRIGGER closed_months_stay_so ON billing_discount;
DROP TRIGGER closed_months_stay ON billing_discount;
DROP FUNCTION refuse_terms_of_closed_months();
"""
# An amount is of the currency that its tenant is billed in; until this transaction is over it is of no other.
CURRENCY = """
CREATE FUNCTION refuse_terms_of_other_currency() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  billed text;
BEGIN
  SELECT t.currency INTO billed FROM tenants_tenant t WHERE t.id = NEW.tenant_id FOR SHARE;
  IF FOUND AND NEW.currency NOT IN ('', billed) THEN  -- whose tenant is not there, its key refuses
    RAISE EXCEPTION 'tenant % is billed in %, not in %', NEW.tenant_id, billed, NEW.currency
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'terms_in_tenants_currency';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_discount
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_minimum
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_commitment
  FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
"""
NO_CURRENCY = """
DROP TRIGGER in_its_currency ON billing_commitment;
DROP TRIGGER in_its_currency ON billing_minimum;
DROP TRIGGER in_its_currency ON billing_discount;
DROP FUNCTION refuse_terms_of_other_currency();
"""
# As 0004 has it; what was agreed in a currency binds as what was charged in it.
STAYS = """
CREATE OR REPLACE FUNCTION refuse_other_currency() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  entered text := coalesce(current_setting('app.tenant', true), '');
  counted boolean;
BEGIN
  LOCK TABLE billing_ratedcharge IN SHARE ROW EXCLUSIVE MODE;
  PERFORM set_config('app.tenant', OLD.id, true);
  counted := EXISTS (SELECT FROM billing_ratedcharge WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM broker_transition WHERE tenant_id = OLD.id AND before = 'active')
    OR EXISTS (SELECT FROM broker_lease WHERE tenant_id = OLD.id AND state <> 'released'){terms};
  PERFORM set_config('app.tenant', entered, true);
  IF counted THEN
    RAISE EXCEPTION 'tenant % is charged in % and stays with it', OLD.id, OLD.currency
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenant_currency_stays';
  END IF;
  RETURN NEW;
END $$;
"""
AGREED = """
    OR EXISTS (SELECT FROM billing_minimum WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM billing_commitment WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM billing_discount WHERE tenant_id = OLD.id AND currency <> '')"""
FINAL = """
CREATE TRIGGER agreed_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN (OLD.status NOT IN ('draft', 'closing') AND NEW.agreed IS DISTINCT FROM OLD.agreed)
  EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0053_terms_stand"), ("tenants", "0008_makers")]

    operations = [
        migrations.RunSQL(MEANT, ANYHOW),
        migrations.RunSQL(MONTHS, NO_MONTHS),
        migrations.RunSQL(CURRENCY, NO_CURRENCY),
        migrations.RunSQL(STAYS.format(terms=AGREED), STAYS.format(terms="")),
        migrations.RunSQL(FINAL, "DROP TRIGGER agreed_stays ON billing_invoice;"),
    ]
