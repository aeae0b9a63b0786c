"""What PostgreSQL promises about the ledger, whoever writes.

A transfer is never changed; its two accounts are of its own currency, and of its own tenant or the platform's; it is
reversed once, by its exact opposite; and every balance changes in the transaction of the transfer, never below its
floor. Nothing of the product may write a balance: only the trigger does, as the owner.
"""

from django.db import migrations

from tenants.models.walls import append_only, tenant_wall

# Inside these functions, and nowhere else, the owner sees every tenant's accounts: a statement may be about many. The
# setting is taken back at their end, and opens nothing to any other role.
POSTING = "current_setting('app.ledger', true) = 'posting'"
BEGIN = "PERFORM set_config('app.ledger', 'posting', true);"
END = "PERFORM set_config('app.ledger', '', true);"
AS_THE_BOOKS = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public"
RIGHTS = f"""
CREATE POLICY posting ON billing_ledgeraccount TO gpubroker_owner USING ({POSTING}) WITH CHECK ({POSTING});
CREATE POLICY posting ON billing_accountbalance TO gpubroker_owner USING ({POSTING}) WITH CHECK ({POSTING});
CREATE POLICY posting ON billing_ledgertransfer FOR SELECT TO gpubroker_owner USING ({POSTING});
-- The platform's accounts by id, type and currency; what is on them nobody sees who is not an operator.
CREATE POLICY platform ON billing_ledgeraccount FOR SELECT USING (tenant_id IS NULL);
REVOKE UPDATE, DELETE ON billing_accountbalance FROM gpubroker_web, gpubroker_worker;
CREATE TRIGGER stays BEFORE DELETE ON billing_accountbalance FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER stays_truncate BEFORE TRUNCATE ON billing_accountbalance
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE billing_ledgertransfer ALTER COLUMN recorded_at SET DEFAULT clock_timestamp();
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT transfer_named_after_ref CHECK (starts_with(idem, (ref || ':') COLLATE "C"));
"""
NO_RIGHTS = """
ALTER TABLE billing_ledgertransfer DROP CONSTRAINT transfer_named_after_ref;
DROP TRIGGER stays_truncate ON billing_accountbalance;
DROP TRIGGER stays ON billing_accountbalance;
GRANT UPDATE, DELETE ON billing_accountbalance TO gpubroker_web, gpubroker_worker;
DROP POLICY platform ON billing_ledgeraccount;
DROP POLICY posting ON billing_ledgertransfer;
DROP POLICY posting ON billing_accountbalance;
DROP POLICY posting ON billing_ledgeraccount;
"""
ACCOUNTS = f"""
CREATE FUNCTION open_balance() RETURNS trigger {AS_THE_BOOKS} AS $$
BEGIN
  {BEGIN}
  INSERT INTO billing_accountbalance (account_id, tenant_id, minor, floor)
  VALUES (NEW.id, NEW.tenant_id, 0, CASE WHEN NEW.type IN ('wallet_paid', 'wallet_promo') THEN 0 END);
  {END}
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION open_balance() FROM PUBLIC;
CREATE TRIGGER opens_balance AFTER INSERT ON billing_ledgeraccount FOR EACH ROW EXECUTE FUNCTION open_balance();
-- A tenant's session cannot write a row that is nobody's; this is how it comes to the platform's accounts.
CREATE FUNCTION open_platform_account(wanted text, code text, moment timestamptz) RETURNS void
  {AS_THE_BOOKS} AS $$
BEGIN
  {BEGIN}
  INSERT INTO billing_ledgeraccount (tenant_id, type, currency, opened_at) VALUES (NULL, wanted, code, moment)
      ON CONFLICT DO NOTHING;
  {END}
END $$;
REVOKE ALL ON FUNCTION open_platform_account(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION open_platform_account(text, text, timestamptz) TO gpubroker_web, gpubroker_worker;
"""
NO_ACCOUNTS = """
DROP FUNCTION open_platform_account(text, text, timestamptz);
DROP TRIGGER opens_balance ON billing_ledgeraccount;
DROP FUNCTION open_balance();
"""
# For the statement as a whole: row by row, two composite foreign keys alone would cost three times what all of this
# does (decision 0027). Accounts are never changed or removed, so that what was true at the insert stays true.
# Balances are locked in the order of their accounts, lest two statements wait for each other.
TRANSFERS = f"""
CREATE FUNCTION post_transfers() RETURNS trigger {AS_THE_BOOKS} AS $$
DECLARE
  accounts bigint;
  moved bigint;
  odd text;
BEGIN
  {BEGIN}
  PERFORM FROM billing_accountbalance
    WHERE account_id IN (SELECT debit_account_id FROM added UNION SELECT credit_account_id FROM added)
    ORDER BY account_id FOR UPDATE;
  WITH pair AS MATERIALIZED (
    SELECT tenant_id, debit_account_id, credit_account_id, currency, sum(minor) AS minor
      FROM added GROUP BY tenant_id, debit_account_id, credit_account_id, currency
  ), leg AS (
    SELECT tenant_id, currency, debit_account_id AS account_id, minor FROM pair
     UNION ALL
    SELECT tenant_id, currency, credit_account_id, -minor FROM pair
  ), met AS MATERIALIZED (
    SELECT leg.account_id, coalesce(bool_and(a.currency = leg.currency
             AND (a.tenant_id IS NULL OR a.tenant_id = leg.tenant_id)), false) AS fits,
           sum(CASE WHEN a.type IN ('wallet_paid', 'wallet_promo', 'revenue', 'tax_payable', 'breakage')
                    THEN -leg.minor ELSE leg.minor END)::bigint AS minor
      FROM leg LEFT JOIN billing_ledgeraccount a ON a.id = leg.account_id
     GROUP BY leg.account_id
  ), posted AS (
    UPDATE billing_accountbalance b SET minor = b.minor + met.minor
      FROM met WHERE b.account_id = met.account_id AND met.fits
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM met), (SELECT count(*) FROM posted),
         (SELECT min(met.account_id)::text FROM met WHERE NOT met.fits)
    INTO accounts, moved, odd;
  IF accounts <> moved THEN
    RAISE EXCEPTION 'a transfer is between accounts of its own currency, of its own tenant or the platform, not %', odd
      USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'transfer_between_its_accounts';
  END IF;
  SELECT x.idem INTO odd FROM added x
    LEFT JOIN billing_ledgertransfer o
      ON o.id = x.reverses_id AND o.reverses_id IS NULL
     AND (o.tenant_id, o.debit_account_id, o.credit_account_id, o.minor)
       = (x.tenant_id, x.credit_account_id, x.debit_account_id, x.minor)
   WHERE x.reverses_id IS NOT NULL AND o.id IS NULL LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% is not the opposite of the transfer that it reverses', odd
      USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'reversal_is_the_opposite';
  END IF;
  {END}
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION post_transfers() FROM PUBLIC;
CREATE TRIGGER posted AFTER INSERT ON billing_ledgertransfer REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION post_transfers();
"""
NO_TRANSFERS = "DROP TRIGGER posted ON billing_ledgertransfer; DROP FUNCTION post_transfers();"


class Migration(migrations.Migration):
    dependencies = [("billing", "0010_ledger"), ("tenants", "0002_walls")]
    operations = [
        tenant_wall("billing_ledgeraccount"),
        tenant_wall("billing_ledgertransfer"),
        tenant_wall("billing_accountbalance"),
        tenant_wall("billing_ledgerseal"),
        append_only("billing_ledgeraccount"),
        append_only("billing_ledgertransfer"),
        append_only("billing_ledgerseal"),
        migrations.RunSQL(RIGHTS, NO_RIGHTS),
        migrations.RunSQL(ACCOUNTS, NO_ACCOUNTS),
        migrations.RunSQL(TRANSFERS, NO_TRANSFERS),
    ]
