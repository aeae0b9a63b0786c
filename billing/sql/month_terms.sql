-- Whether a month of a tenant may carry anything beside its seconds.
SELECT EXISTS (SELECT FROM billing_discount WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_minimum WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_commitment WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_priceversion WHERE model <> 'flat')
