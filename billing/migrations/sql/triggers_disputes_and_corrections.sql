-- Keep disputes and proposed corrections unchanged; only their state changes, once.

CREATE TRIGGER dispute_ends_once BEFORE UPDATE ON billing_dispute FOR EACH ROW
  WHEN (OLD.status <> 'open' OR
        (NEW.id, NEW.tenant_id, NEW.invoice_id, NEW.line_id, NEW.minor, NEW.tax_minor, NEW.currency, NEW.reason,
         NEW.opened_at, NEW.opened_by)
        IS DISTINCT FROM
        (OLD.id, OLD.tenant_id, OLD.invoice_id, OLD.line_id, OLD.minor, OLD.tax_minor, OLD.currency, OLD.reason,
         OLD.opened_at, OLD.opened_by))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER dispute_stays BEFORE DELETE ON billing_dispute FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER proposal_stays BEFORE UPDATE ON billing_correction FOR EACH ROW
  WHEN (OLD.status IN ('booked', 'withdrawn') OR
        (NEW.id, NEW.kind, NEW.lease_id, NEW.charge, NEW.price_version_id, NEW.nano_per_hour, NEW.currency, NEW.since,
         NEW.until, NEW.reason, NEW.minor, NEW.limit_minor, NEW.seal, NEW.author_id, NEW.author, NEW.proposed_at)
        IS DISTINCT FROM
        (OLD.id, OLD.kind, OLD.lease_id, OLD.charge, OLD.price_version_id, OLD.nano_per_hour, OLD.currency, OLD.since,
         OLD.until, OLD.reason, OLD.minor, OLD.limit_minor, OLD.seal, OLD.author_id, OLD.author, OLD.proposed_at)
        OR (OLD.approver_id IS NOT NULL AND NEW.approver_id IS DISTINCT FROM OLD.approver_id)
        OR (OLD.second_approver_id IS NOT NULL AND NEW.second_approver_id IS DISTINCT FROM OLD.second_approver_id))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER correction_stays BEFORE DELETE ON billing_correction
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER diff_stays BEFORE UPDATE ON billing_tenantcorrection FOR EACH ROW
  WHEN (OLD.status <> 'waiting' OR
        (NEW.id, NEW.tenant_id, NEW.correction_id, NEW.diff, NEW.seal, NEW.minor)
        IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.correction_id, OLD.diff, OLD.seal, OLD.minor))
  EXECUTE FUNCTION refuse_change();
CREATE TRIGGER share_stays BEFORE DELETE ON billing_tenantcorrection
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_foreign_share() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM billing_correction c WHERE c.id = NEW.correction_id AND c.kind = 'lease'
                AND NOT EXISTS (SELECT FROM broker_lease l
                                 WHERE l.id = c.lease_id AND l.tenant_id = NEW.tenant_id)) THEN
    RAISE EXCEPTION 'a correction of a lease is of its own tenant' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER of_its_own_tenant BEFORE INSERT ON billing_tenantcorrection
  FOR EACH ROW EXECUTE FUNCTION refuse_foreign_share();
