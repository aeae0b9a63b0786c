-- Keep the totals of budgets, wallets and token caps equal to the sum of their parts.

-- Budgets: the total of a month is the sum of the holds' parts.
CREATE FUNCTION count_parts_in() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM came c WHERE NOT EXISTS (
               SELECT FROM billing_hold h WHERE h.id = c.hold_id AND h.tenant_id = c.tenant_id)
              OR NOT EXISTS (
               SELECT FROM billing_budgetmonth m WHERE m.id = c.month_id AND m.tenant_id = c.tenant_id)) THEN
    RAISE EXCEPTION 'a part is of a hold and of a month of its tenant' USING ERRCODE = 'restrict_violation';
  END IF;
  UPDATE billing_budgetmonth m SET taken_num = m.taken_num + c.num, spent_num = m.spent_num + c.spent_num
    FROM (SELECT month_id, sum(num) AS num, sum(spent_num) AS spent_num FROM came GROUP BY 1) c WHERE m.id = c.month_id;
  RETURN NULL;
END $$;

CREATE FUNCTION count_parts_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM gone g FULL JOIN came c ON c.id = g.id
              WHERE (c.month_id, c.hold_id, c.tenant_id) IS DISTINCT FROM (g.month_id, g.hold_id, g.tenant_id)) THEN
    RAISE EXCEPTION 'a part stays with its hold and its month' USING ERRCODE = 'restrict_violation';
  END IF;
  UPDATE billing_budgetmonth m SET taken_num = m.taken_num + c.num, spent_num = m.spent_num + c.spent_num
    FROM (SELECT c.month_id, sum(c.num - g.num) AS num, sum(c.spent_num - g.spent_num) AS spent_num
            FROM came c JOIN gone g ON g.id = c.id GROUP BY 1) c WHERE m.id = c.month_id;
  RETURN NULL;
END $$;

CREATE FUNCTION count_parts_out() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE billing_budgetmonth m SET taken_num = m.taken_num - g.num, spent_num = m.spent_num - g.spent_num
    FROM (SELECT month_id, sum(num) AS num, sum(spent_num) AS spent_num FROM gone GROUP BY 1) g WHERE m.id = g.month_id;
  RETURN NULL;
END $$;

CREATE TRIGGER counted_in AFTER INSERT ON billing_holdpart
  REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_parts_in();
CREATE TRIGGER counted_over AFTER UPDATE ON billing_holdpart
  REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_parts_over();
CREATE TRIGGER counted_out AFTER DELETE ON billing_holdpart
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_parts_out();

-- Wallets: the held amount is the sum of the leases' parts.
CREATE FUNCTION count_wallet_in() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM came c WHERE c.hold_id IS NOT NULL AND NOT EXISTS (
               SELECT FROM billing_hold h WHERE h.id = c.hold_id AND h.tenant_id = c.tenant_id)
              OR NOT EXISTS (
               SELECT FROM billing_wallet w WHERE w.id = c.wallet_id AND w.tenant_id = c.tenant_id)) THEN
    RAISE EXCEPTION 'a part is of a hold and of the wallet of its tenant' USING ERRCODE = 'restrict_violation';
  END IF;
  UPDATE billing_wallet w SET taken_num = w.taken_num + c.num
    FROM (SELECT wallet_id, sum(num) AS num FROM came GROUP BY 1) c WHERE w.id = c.wallet_id;
  RETURN NULL;
END $$;

CREATE FUNCTION count_wallet_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM gone g FULL JOIN came c ON c.id = g.id
              WHERE (c.wallet_id, c.hold_id, c.tenant_id) IS DISTINCT FROM (g.wallet_id, g.hold_id, g.tenant_id)) THEN
    RAISE EXCEPTION 'a part stays with its hold and its wallet' USING ERRCODE = 'restrict_violation';
  END IF;
  UPDATE billing_wallet w SET taken_num = w.taken_num + c.num
    FROM (SELECT c.wallet_id, sum(c.num - g.num) AS num FROM came c JOIN gone g ON g.id = c.id GROUP BY 1) c
   WHERE w.id = c.wallet_id;
  RETURN NULL;
END $$;

CREATE FUNCTION count_wallet_out() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE billing_wallet w SET taken_num = w.taken_num - g.num
    FROM (SELECT wallet_id, sum(num) AS num FROM gone GROUP BY 1) g WHERE w.id = g.wallet_id;
  RETURN NULL;
END $$;

CREATE TRIGGER counted_in AFTER INSERT ON billing_walletpart
  REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_in();
CREATE TRIGGER counted_over AFTER UPDATE ON billing_walletpart
  REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_over();
CREATE TRIGGER counted_out AFTER DELETE ON billing_walletpart
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_out();

-- Token caps: the total of a day is the sum of the leases' parts.
CREATE FUNCTION count_token_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_tokencapday d JOIN billing_tokencaplease l ON l.cap_id = d.cap_id
                  WHERE d.id = NEW.day_id AND l.id = NEW.of_id AND d.tenant_id = NEW.tenant_id) THEN
    RAISE EXCEPTION 'a part is of a lease and of a day of one token' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.day_id, NEW.of_id, NEW.tenant_id) IS DISTINCT FROM (OLD.day_id, OLD.of_id, OLD.tenant_id) THEN
      RAISE EXCEPTION 'a part stays with its lease and its day' USING ERRCODE = 'restrict_violation';
    END IF;
    UPDATE billing_tokencapday SET taken_num = taken_num + NEW.num - OLD.num WHERE id = NEW.day_id AND NEW.num <> OLD.num;
  ELSE
    UPDATE billing_tokencapday SET taken_num = taken_num + NEW.num WHERE id = NEW.day_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER counted AFTER INSERT OR UPDATE ON billing_tokencappart FOR EACH ROW EXECUTE FUNCTION count_token_part();
