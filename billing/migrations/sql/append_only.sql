-- Refuse changes of charges, transfers, credits, agreements and issued documents.

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'billing_balancedraw',
    'billing_correctedinterval',
    'billing_creditnote',
    'billing_creditnoteline',
    'billing_disputestep',
    'billing_dunningstep',
    'billing_grant',
    'billing_grantdraw',
    'billing_grantexpiry',
    'billing_grantreturn',
    'billing_storeddocument',
    'billing_ledgeraccount',
    'billing_ledgerseal',
    'billing_ledgertransfer',
    'billing_invoiceadjustment',
    'billing_quote',
    'billing_ratedcharge'
  ] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I'
                   ' FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('REVOKE UPDATE, DELETE ON %I FROM gpubroker_web, gpubroker_worker', name);
  END LOOP;
END $$;

-- Balances change, but only through the functions of the ledger.
CREATE TRIGGER stays BEFORE DELETE ON billing_accountbalance FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER stays_truncate BEFORE TRUNCATE ON billing_accountbalance
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
