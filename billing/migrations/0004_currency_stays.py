"""What a tenant owes is counted in one currency: it stays once anything has been charged, or is about to be."""

from django.db import migrations

# The trigger stands on tenants' table and here, because only this floor knows what a charge is. It locks out
# whoever is adding charges at this moment, so that none of the old currency comes in beside the new one. The
# function looks as the owner, whom row-level security binds too, whatever tenant the session is in.
STAYS = """
CREATE FUNCTION refuse_other_currency() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  entered text := coalesce(current_setting('app.tenant', true), '');
  counted boolean;
BEGIN
  LOCK TABLE billing_ratedcharge IN SHARE ROW EXCLUSIVE MODE;
  PERFORM set_config('app.tenant', OLD.id, true);
  counted := EXISTS (SELECT FROM billing_ratedcharge WHERE tenant_id = OLD.id)
    OR EXISTS (SELECT FROM broker_transition WHERE tenant_id = OLD.id AND before = 'active')
    OR EXISTS (SELECT FROM broker_lease WHERE tenant_id = OLD.id AND state <> 'released');
  PERFORM set_config('app.tenant', entered, true);
  IF counted THEN
    RAISE EXCEPTION 'tenant % is charged in % and stays with it', OLD.id, OLD.currency
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenant_currency_stays';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION refuse_other_currency() FROM PUBLIC;
CREATE TRIGGER currency_stays BEFORE UPDATE ON tenants_tenant
  FOR EACH ROW WHEN (OLD.currency IS DISTINCT FROM NEW.currency) EXECUTE FUNCTION refuse_other_currency();
"""
MOVES = """
DROP TRIGGER currency_stays ON tenants_tenant;
DROP FUNCTION refuse_other_currency();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0003_rating_mark"),
        ("broker", "0008_fewer_indexes"),
        ("tenants", "0006_fewer_indexes"),
    ]
    operations = [migrations.RunSQL(STAYS, MOVES)]
