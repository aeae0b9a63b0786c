-- Refuse changes of exchange rates: invoices state the VAT that they gave.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON billing_exchangerate
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_exchangerate
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON billing_exchangerate FROM gpubroker_web, gpubroker_worker;
