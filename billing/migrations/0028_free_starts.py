"""Seconds of a start that is taken back are given back, as its price says, in charges of a kind of their own."""

from django.db import migrations, models

# What a version gives back is as fixed as what it costs.
FIXED = """
CREATE OR REPLACE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid){more_new})
       IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid){more_old})
     OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
     OR isempty(NEW.valid) THEN
    RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""


def fixed(column: str) -> str:
    new, old = (f", NEW.{column}", f", OLD.{column}") if column else ("", "")
    return FIXED.replace("{more_new}", new).replace("{more_old}", old)


class Migration(migrations.Migration):
    dependencies = [("billing", "0027_wallet_walls")]
    operations = [
        migrations.AddField(
            model_name="priceversion",
            name="free_start_s",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="invoiceline",
            name="given_back_s",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.RunSQL(fixed("free_start_s"), fixed("")),
    ]
