"""Walls around budgets: behind the tenant's own, and what a month has taken is the sum of what holds took."""

from django.db import migrations

from tenants.models.walls import tenant_wall

SUMS = """
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
"""
NO_SUMS = """
DROP TRIGGER counted_out ON billing_holdpart;
DROP TRIGGER counted_over ON billing_holdpart;
DROP TRIGGER counted_in ON billing_holdpart;
DROP FUNCTION count_parts_out();
DROP FUNCTION count_parts_over();
DROP FUNCTION count_parts_in();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0015_budgets")]
    operations = [
        tenant_wall("billing_budget"),
        tenant_wall("billing_budgetmonth"),
        tenant_wall("billing_hold"),
        tenant_wall("billing_holdpart"),
        migrations.RunSQL(SUMS, NO_SUMS),
    ]
