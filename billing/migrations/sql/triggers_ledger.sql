-- Post transfers to balances. Inside these functions, and nowhere else, the owner sees the accounts of every tenant
-- through app.ledger; the setting is reset when they end and opens nothing to other roles.

CREATE FUNCTION open_balance() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  PERFORM set_config('app.ledger', 'posting', true);
  INSERT INTO billing_accountbalance (account_id, tenant_id, minor, floor)
  VALUES (NEW.id, NEW.tenant_id, 0, CASE WHEN NEW.type IN ('wallet_paid', 'wallet_promo') THEN 0 END);
  PERFORM set_config('app.ledger', '', true);
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION open_balance() FROM PUBLIC;
CREATE TRIGGER opens_balance AFTER INSERT ON billing_ledgeraccount FOR EACH ROW EXECUTE FUNCTION open_balance();

-- The session of a tenant cannot insert rows without a tenant; this opens accounts of the platform for it.
CREATE FUNCTION open_platform_account(wanted text, code text, moment timestamptz) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  PERFORM set_config('app.ledger', 'posting', true);
  INSERT INTO billing_ledgeraccount (tenant_id, type, currency, opened_at) VALUES (NULL, wanted, code, moment)
      ON CONFLICT DO NOTHING;
  PERFORM set_config('app.ledger', '', true);
END $$;
REVOKE ALL ON FUNCTION open_platform_account(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION open_platform_account(text, text, timestamptz)
  TO gpubroker_web, gpubroker_worker, gpubroker_system;

-- Checks a whole statement at once: row by row, two composite foreign keys alone would cost three times as much
-- (docs/decisions/0027). Accounts never change or disappear, so what holds at the insert holds for good. Balances are
-- locked in the order of their accounts to avoid deadlocks.
CREATE FUNCTION post_transfers() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  accounts bigint;
  moved bigint;
  odd text;
BEGIN
  PERFORM set_config('app.ledger', 'posting', true);
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
  PERFORM set_config('app.ledger', '', true);
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION post_transfers() FROM PUBLIC;
CREATE TRIGGER posted AFTER INSERT ON billing_ledgertransfer REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION post_transfers();
