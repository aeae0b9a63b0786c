"""Rate cards of one tenant, behind its wall: where such a card has a price, it comes before the list's."""

from django.db import migrations, models

from tenants.models.walls import CURRENT

# The list is everybody's to read; a tenant's own prices are its own, and operators'.
WALL = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON {table}
  USING (tenant_id IS NULL OR tenant_id = {current}) WITH CHECK (tenant_id IS NULL OR tenant_id = {current});
CREATE POLICY readers ON {table} FOR SELECT TO gpubroker_staff, gpubroker_sweep USING (true);
"""
NO_WALL = """
DROP POLICY readers ON {table};
DROP POLICY tenant_wall ON {table};
ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
"""
CARDS = """
CREATE FUNCTION refuse_odd_card() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM billing_ratecard c
                  WHERE c.id = NEW.rate_card_id AND c.tenant_id IS NOT DISTINCT FROM NEW.tenant_id) THEN
    RAISE EXCEPTION 'a price is of whom its card is' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER price_of_a_card AFTER INSERT OR UPDATE OF tenant_id, rate_card_id ON billing_priceversion
  FOR EACH ROW EXECUTE FUNCTION refuse_odd_card();
"""
# By what a tenant pays for an offering, when. `card_id` is its own card where that has any price of the offering: then
# the list's hold in what is left beside those, in one part or several. A plain list has no card and one part.
VIEW = """
CREATE VIEW billing_tenantprice WITH (security_invoker = true) AS
WITH own AS (
  SELECT tenant_id, rate_card_id, offering_id, currency, range_agg(valid) AS span
    FROM billing_priceversion
   WHERE tenant_id IS NOT NULL
   GROUP BY 1, 2, 3, 4
)
SELECT v.tenant_id, v.rate_card_id AS card_id, v.id AS version_id, v.offering_id, v.currency, v.nano_per_hour, v.valid,
       0::smallint AS part
  FROM billing_priceversion v
 WHERE v.tenant_id IS NOT NULL
 UNION ALL
SELECT own.tenant_id, own.rate_card_id, v.id, v.offering_id, v.currency, v.nano_per_hour, rest.valid,
       (rest.n - 1)::smallint
  FROM own
  JOIN billing_priceversion v
    ON v.tenant_id IS NULL AND v.offering_id = own.offering_id AND v.currency = own.currency
 CROSS JOIN LATERAL unnest(tstzmultirange(v.valid) - own.span) WITH ORDINALITY AS rest(valid, n)
 UNION ALL
SELECT t.id, NULL, v.id, v.offering_id, v.currency, v.nano_per_hour, v.valid, 0::smallint
  FROM tenants_tenant t
  JOIN billing_priceversion v ON v.tenant_id IS NULL AND v.currency = t.currency
 WHERE NOT EXISTS (SELECT FROM own WHERE own.tenant_id = t.id AND own.offering_id = v.offering_id
                      AND own.currency = v.currency);
GRANT SELECT ON billing_tenantprice TO gpubroker_web, gpubroker_worker, gpubroker_staff, gpubroker_sweep;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0024_kinds_of_charges")]
    operations = [
        migrations.AddField(
            model_name="ratecard", name="tenant_id", field=models.CharField(max_length=40, null=True)
        ),
        migrations.AddField(
            model_name="priceversion", name="tenant_id", field=models.CharField(max_length=40, null=True)
        ),
        migrations.AlterField(model_name="ratecard", name="name", field=models.CharField(max_length=60)),
        migrations.AddConstraint(
            model_name="ratecard",
            constraint=models.UniqueConstraint(
                fields=("tenant_id", "name"), name="rate_card_once", nulls_distinct=False
            ),
        ),
        *(
            migrations.RunSQL(WALL.format(table=table, current=CURRENT), NO_WALL.format(table=table))
            for table in ("billing_ratecard", "billing_priceversion")
        ),
        migrations.RunSQL(
            CARDS, "DROP TRIGGER price_of_a_card ON billing_priceversion; DROP FUNCTION refuse_odd_card();"
        ),
        migrations.RunSQL(VIEW, "DROP VIEW billing_tenantprice;"),
    ]
