-- Show and change rows only in transactions that have set app.tenant to their tenant. FORCE binds the owner too, so a
-- data migration has to run tenant by tenant. The roles in `readers` may read the rows of all tenants.

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'billing_accountbalance',
    'billing_autotopup',
    'billing_balancedraw',
    'billing_billingdetails',
    'billing_billingperiod',
    'billing_budget',
    'billing_budgetalert',
    'billing_budgetmonth',
    'billing_budgetstop',
    'billing_paymentcardform',
    'billing_commitment',
    'billing_correctedinterval',
    'billing_tenantcorrection',
    'billing_creditnote',
    'billing_creditnoteline',
    'billing_discount',
    'billing_dispute',
    'billing_disputestep',
    'billing_dunningstep',
    'billing_grant',
    'billing_grantdraw',
    'billing_grantexpiry',
    'billing_grantreturn',
    'billing_hold',
    'billing_holdpart',
    'billing_invoice',
    'billing_invoiceline',
    'billing_invoicetax',
    'billing_storeddocument',
    'billing_ledgeraccount',
    'billing_ledgerseal',
    'billing_ledgertransfer',
    'billing_queuedemail',
    'billing_minimum',
    'billing_invoiceadjustment',
    'billing_payment',
    'billing_paymentdispute',
    'billing_paymentrefund',
    'billing_quote',
    'billing_ratedcharge',
    'billing_ratingwatermark',
    'billing_refund',
    'billing_stripecharge',
    'billing_stripecommand',
    'billing_stripecustomer',
    'billing_accountterms',
    'billing_tokencap',
    'billing_tokencapday',
    'billing_tokencaplease',
    'billing_tokencappart',
    'billing_topup',
    'billing_wallet',
    'billing_walletpart'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system'
                   ' USING (true)', name);
  END LOOP;
END $$;

-- List prices have no tenant and are visible to everyone; the prices of a tenant only to itself.
ALTER TABLE billing_ratecard ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON billing_ratecard
  USING (tenant_id IS NULL OR tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')))
  WITH CHECK (tenant_id IS NULL OR tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON billing_ratecard FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);
ALTER TABLE billing_priceversion ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON billing_priceversion
  USING (tenant_id IS NULL OR tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')))
  WITH CHECK (tenant_id IS NULL OR tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON billing_priceversion FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);

-- Rating writes charges, and how far it has come, for all tenants in one statement (docs/decisions/0006).
CREATE POLICY rating ON billing_ratedcharge FOR INSERT TO gpubroker_system WITH CHECK (true);
CREATE POLICY rating ON billing_ratingwatermark TO gpubroker_system USING (true) WITH CHECK (true);

-- The trigger functions of the ledger set app.ledger while they run: one statement may touch accounts of many tenants.
CREATE POLICY posting ON billing_ledgeraccount TO gpubroker_owner
  USING (current_setting('app.ledger', true) = 'posting') WITH CHECK (current_setting('app.ledger', true) = 'posting');
CREATE POLICY posting ON billing_accountbalance TO gpubroker_owner
  USING (current_setting('app.ledger', true) = 'posting') WITH CHECK (current_setting('app.ledger', true) = 'posting');
CREATE POLICY posting ON billing_ledgertransfer FOR SELECT TO gpubroker_owner
  USING (current_setting('app.ledger', true) = 'posting');
-- Everyone may see that the platform's accounts exist; their balances are visible to operators only.
CREATE POLICY platform ON billing_ledgeraccount FOR SELECT USING (tenant_id IS NULL);

-- Closing months in sets: the system role writes for the tenants that the transaction named in app.tenants
-- (docs/decisions/0046). A subquery with IN is hashed once; = ANY (array) would be searched for every row.
DO $$
DECLARE
  named CONSTANT text := 'tenant_id IN (SELECT unnest(string_to_array(current_setting(''app.tenants'', true), '','')))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'billing_billingperiod',
    'billing_invoice',
    'billing_invoiceline',
    'billing_invoicetax',
    'billing_ledgeraccount',
    'billing_ledgertransfer',
    'billing_queuedemail',
    'tenants_auditevent'
  ] LOOP
    EXECUTE format('CREATE POLICY shard ON %I TO gpubroker_system USING (%s) WITH CHECK (%s)', name, named, named);
  END LOOP;
END $$;
