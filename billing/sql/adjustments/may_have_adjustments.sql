-- Tell whether an open month of a tenant may have adjustments: agreed terms, or use of an offering with tiered prices.
-- Tiered prices are few and have an index of their own, so their existence is tested first.
SELECT EXISTS (SELECT FROM billing_discount WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_minimum WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_commitment WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM billing_priceversion WHERE model <> 'flat')
       AND EXISTS (SELECT FROM billing_invoice i
                     JOIN billing_ratedcharge c ON c.period_id = i.period_id AND c.billed_period_id = i.period_id
                     JOIN billing_priceversion v ON v.offering_id = c.offering_id AND v.model <> 'flat'
                    WHERE i.tenant_id = %(tenant)s AND i.status = 'draft'
                    UNION ALL  -- late seconds of a month that is closed
                   SELECT FROM billing_invoice i
                     JOIN billing_ratedcharge c ON c.billed_period_id = i.period_id AND c.billed_period_id <> c.period_id
                     JOIN billing_priceversion v ON v.offering_id = c.offering_id AND v.model <> 'flat'
                    WHERE i.tenant_id = %(tenant)s AND i.status = 'draft')
