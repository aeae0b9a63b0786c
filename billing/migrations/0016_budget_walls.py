"""Walls around budgets: behind the tenant's own, and what a month has taken is the sum of what holds took."""

from django.db import migrations

from tenants.models.walls import tenant_wall

SUMS = """
CREATE FUNCTION count_hold_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (NEW.month_id, NEW.hold_id, NEW.tenant_id)
                          IS DISTINCT FROM (OLD.month_id, OLD.hold_id, OLD.tenant_id) THEN
    RAISE EXCEPTION 'part % stays with its hold and its month', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'DELETE' THEN
    UPDATE billing_budgetmonth SET taken_num = taken_num - OLD.num, spent_num = spent_num - OLD.spent_num
     WHERE id = OLD.month_id;
    RETURN NULL;
  END IF;
  IF TG_OP = 'INSERT' AND NOT EXISTS (
       SELECT FROM billing_hold h WHERE h.id = NEW.hold_id AND h.tenant_id = NEW.tenant_id) THEN
    RAISE EXCEPTION 'part of %: that hold is not of its tenant', NEW.hold_id USING ERRCODE = 'restrict_violation';
  END IF;
  UPDATE billing_budgetmonth
     SET taken_num = taken_num + NEW.num - CASE TG_OP WHEN 'UPDATE' THEN OLD.num ELSE 0 END,
         spent_num = spent_num + NEW.spent_num - CASE TG_OP WHEN 'UPDATE' THEN OLD.spent_num ELSE 0 END
   WHERE id = NEW.month_id AND tenant_id = NEW.tenant_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'part of %: that month is not of its tenant', NEW.hold_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER counted_in_its_month AFTER INSERT OR UPDATE OR DELETE ON billing_holdpart
  FOR EACH ROW EXECUTE FUNCTION count_hold_part();
"""
NO_SUMS = "DROP TRIGGER counted_in_its_month ON billing_holdpart; DROP FUNCTION count_hold_part();"


class Migration(migrations.Migration):
    dependencies = [("billing", "0015_budgets")]
    operations = [
        tenant_wall("billing_budget"),
        tenant_wall("billing_budgetmonth"),
        tenant_wall("billing_hold"),
        tenant_wall("billing_holdpart"),
        migrations.RunSQL(SUMS, NO_SUMS),
    ]
