-- Widen or narrow the default privileges of deploy/roles.sql.

-- Rows that are settled by an UPDATE and never deleted.
REVOKE DELETE ON billing_payment, billing_topup, billing_refund, billing_paymentdispute, billing_paymentrefund,
  billing_stripeevent, billing_stripecharge, billing_stripecommand FROM gpubroker_web, gpubroker_worker;
-- The web process never calls Stripe.
REVOKE INSERT, UPDATE ON billing_stripecharge, billing_stripecommand FROM gpubroker_web;
-- Only the functions of the ledger change balances.
REVOKE UPDATE, DELETE ON billing_accountbalance FROM gpubroker_web, gpubroker_worker;

-- Rating charges all tenants in one statement (docs/decisions/0006).
GRANT INSERT ON billing_ratedcharge TO gpubroker_system;
GRANT INSERT, UPDATE ON billing_ratingwatermark TO gpubroker_system;

-- Months are closed for many tenants at once (docs/decisions/0046).
GRANT INSERT, UPDATE ON billing_billingperiod, billing_invoice, billing_invoiceline, billing_invoiceseries
  TO gpubroker_system;
GRANT INSERT, UPDATE, DELETE ON billing_invoicetax TO gpubroker_system;
GRANT INSERT ON billing_ledgeraccount, billing_ledgertransfer, billing_queuedemail, tenants_auditevent TO gpubroker_system;
GRANT UPDATE (used) ON billing_taxrate TO gpubroker_system;  -- a final invoice marks the tax rates it used
