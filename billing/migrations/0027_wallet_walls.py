"""Walls around wallets: behind the tenant's own, and what a wallet has taken is the sum of what leases took."""

from django.db import migrations

from tenants.models.walls import tenant_wall

SUMS = """
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
"""
NO_SUMS = """
DROP TRIGGER counted_out ON billing_walletpart;
DROP TRIGGER counted_over ON billing_walletpart;
DROP TRIGGER counted_in ON billing_walletpart;
DROP FUNCTION count_wallet_out();
DROP FUNCTION count_wallet_over();
DROP FUNCTION count_wallet_in();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0026_wallets")]
    operations = [
        tenant_wall("billing_tenantterms"),
        tenant_wall("billing_wallet"),
        tenant_wall("billing_walletpart"),
        migrations.RunSQL(SUMS, NO_SUMS),
    ]
