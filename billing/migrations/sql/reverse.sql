-- Undo the other files of this folder, in the reverse order. The dropped prefix indexes do not come back.

DROP INDEX transition_billable_end;
DROP VIEW billing_tenantprice;
DROP POLICY shard ON tenants_auditevent;
REVOKE INSERT ON tenants_auditevent FROM gpubroker_system;
REVOKE INSERT, UPDATE ON billing_invoiceseries FROM gpubroker_system;
REVOKE UPDATE (used) ON billing_taxrate FROM gpubroker_system;

DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT policyname AS name, tablename AS place FROM pg_policies
                WHERE schemaname = current_schema() AND tablename LIKE 'billing\_%' LOOP
    EXECUTE format('DROP POLICY %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relname LIKE 'billing\_%'
                  AND relrowsecurity LOOP
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY', item.place);
  END LOOP;
  FOR item IN SELECT t.tgname AS name, c.relname AS place FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'billing\_%'
                  AND NOT t.tgisinternal LOOP
    EXECUTE format('DROP TRIGGER %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname LIKE 'billing\_%' LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO gpubroker_web, gpubroker_worker', item.place);
    EXECUTE format('GRANT SELECT ON %I TO gpubroker_staff, gpubroker_system, gpubroker_auth', item.place);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %I FROM gpubroker_system', item.place);
  END LOOP;
END $$;

DROP FUNCTION count_parts_in(), count_parts_out(), count_parts_over(), count_token_part(), count_wallet_in(),
  count_wallet_out(), count_wallet_over(), open_balance(), post_transfers(), refuse_campaign_change(),
  refuse_change_of_final(), refuse_commitment_change(), refuse_discount_change(), refuse_final_invoice_change(),
  refuse_foreign_share(), refuse_granted_money(), refuse_later_lines(),
  refuse_minimum_change(), refuse_odd_rate_card(), refuse_odd_draw(), refuse_odd_grant_draws(),
  refuse_odd_grant_returns(), refuse_odd_lapse(), refuse_odd_note(), refuse_odd_paper(), refuse_odd_parts(),
  refuse_odd_payment(), refuse_odd_quote(), refuse_odd_return_sum(), refuse_odd_tax(), refuse_overcredit(),
  refuse_payment_change(), refuse_price_change(), refuse_refund_change(), refuse_spans_of_closed_months(),
  refuse_stripe_charge_change(), refuse_stripe_command_change(), refuse_tax_rate_change(),
  refuse_terms_of_closed_months(), refuse_terms_of_other_currency(), refuse_topup_change(), refuse_undecided_tax(),
  refuse_unpaid();

DROP FUNCTION open_platform_account(text, text, timestamptz);
DROP FUNCTION refuse_other_currency() CASCADE;  -- its trigger is on a table of tenants
ALTER TABLE billing_campaign DROP CONSTRAINT campaign_of_a_currency, DROP CONSTRAINT campaign_of_what_there_is;
ALTER TABLE billing_discount DROP CONSTRAINT discount_of_months, DROP CONSTRAINT discount_of_a_currency,
  DROP CONSTRAINT discount_of_what_there_is;
ALTER TABLE billing_minimum DROP CONSTRAINT minimum_lasts_whole_seconds, DROP CONSTRAINT minimum_of_what_there_is;
ALTER TABLE billing_priceversion DROP CONSTRAINT tiers_tile;
DROP FUNCTION price_tiles(text, bigint, bigint[], bigint[]);
ALTER TABLE billing_ledgertransfer
  DROP CONSTRAINT transfer_named_after_ref, ALTER COLUMN recorded_at SET DEFAULT statement_timestamp();
ALTER TABLE billing_ratedcharge ALTER COLUMN recorded_at SET DEFAULT statement_timestamp();
