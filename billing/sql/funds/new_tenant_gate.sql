-- Whether a tenant is new, pays in advance, and has a payment card.
SELECT t.released_at IS NULL, coalesce(a.payment = 'prepaid', false),
       EXISTS (SELECT FROM billing_stripecustomer c WHERE c.tenant_id = t.id AND c.card_id <> '')
  FROM tenants_tenant t LEFT JOIN billing_accountterms a ON a.tenant_id = t.id
 WHERE t.id = %(tenant)s
