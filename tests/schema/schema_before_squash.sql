-- The schema that the 98 migrations before the squash created, described by catalogue.sql and never edited.
-- What was renamed or removed since then is listed in renamed.tsv.
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT DELETE ON r TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT DELETE ON r TO gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT INSERT ON r TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT INSERT ON r TO gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON S TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON S TO gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON r TO gpubroker_door;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON r TO gpubroker_staff;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON r TO gpubroker_sweep;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON r TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT SELECT ON r TO gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT UPDATE ON r TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT UPDATE ON r TO gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT USAGE ON S TO gpubroker_web;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner GRANT USAGE ON S TO gpubroker_worker;
ALTER FUNCTION count_parts_in() OWNER TO gpubroker_owner;
ALTER FUNCTION count_parts_out() OWNER TO gpubroker_owner;
ALTER FUNCTION count_parts_over() OWNER TO gpubroker_owner;
ALTER FUNCTION count_token_part() OWNER TO gpubroker_owner;
ALTER FUNCTION count_wallet_in() OWNER TO gpubroker_owner;
ALTER FUNCTION count_wallet_out() OWNER TO gpubroker_owner;
ALTER FUNCTION count_wallet_over() OWNER TO gpubroker_owner;
ALTER FUNCTION hold_once_free() OWNER TO gpubroker_owner;
ALTER FUNCTION knock_with_token(wanted text, hashed text, at timestamp with time zone) OWNER TO gpubroker_door;
ALTER FUNCTION knock_with_user(who text, wanted text) OWNER TO gpubroker_door;
ALTER FUNCTION note_card_gone() OWNER TO gpubroker_owner;
ALTER FUNCTION note_change() OWNER TO gpubroker_owner;
ALTER FUNCTION note_place_gone() OWNER TO gpubroker_owner;
ALTER FUNCTION open_balance() OWNER TO gpubroker_owner;
ALTER FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone) OWNER TO gpubroker_owner;
ALTER FUNCTION post_transfers() OWNER TO gpubroker_owner;
ALTER FUNCTION price_tiles(model text, nano bigint, starts bigint[], prices bigint[]) OWNER TO gpubroker_owner;
ALTER FUNCTION quota_counts_holdings() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_after_released() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_campaign_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_change_of_final() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_commitment_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_discount_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_final_invoice_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_final_line_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_foreign_share() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_granted_money() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_later_lines() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_minimum_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_card() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_draw() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_grant_draws() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_grant_returns() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_lapse() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_note() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_paper() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_parts() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_payment() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_quote() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_return_sum() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_odd_tax() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_other_currency() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_overcredit() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_payment_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_price_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_refund_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_spans_of_closed_months() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_stripe_charge_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_stripe_command_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_tax_rate_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_terms_of_closed_months() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_terms_of_other_currency() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_topup_change() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_undecided_tax() OWNER TO gpubroker_owner;
ALTER FUNCTION refuse_unpaid() OWNER TO gpubroker_owner;
ALTER SEQUENCE account_emailaddress_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF account_emailaddress.id;
ALTER SEQUENCE account_emailconfirmation_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF account_emailconfirmation.id;
ALTER SEQUENCE auth_group_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF auth_group.id;
ALTER SEQUENCE auth_group_permissions_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF auth_group_permissions.id;
ALTER SEQUENCE auth_permission_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF auth_permission.id;
ALTER SEQUENCE billing_autotopup_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_autotopup.id;
ALTER SEQUENCE billing_billingperiod_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_billingperiod.id;
ALTER SEQUENCE billing_billingrun_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_billingrun.id;
ALTER SEQUENCE billing_budgetmonth_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_budgetmonth.id;
ALTER SEQUENCE billing_correctionpart_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_correctionpart.id;
ALTER SEQUENCE billing_correctionshare_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_correctionshare.id;
ALTER SEQUENCE billing_creditnoteline_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_creditnoteline.id;
ALTER SEQUENCE billing_disputestep_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_disputestep.id;
ALTER SEQUENCE billing_dunningstep_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_dunningstep.id;
ALTER SEQUENCE billing_holdpart_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_holdpart.id;
ALTER SEQUENCE billing_invoiceline_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_invoiceline.id;
ALTER SEQUENCE billing_invoicetax_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_invoicetax.id;
ALTER SEQUENCE billing_keptpaper_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_keptpaper.id;
ALTER SEQUENCE billing_ledgeraccount_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_ledgeraccount.id;
ALTER SEQUENCE billing_ledgerseal_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_ledgerseal.id;
ALTER SEQUENCE billing_ledgertransfer_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_ledgertransfer.id;
ALTER SEQUENCE billing_priceversion_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_priceversion.id;
ALTER SEQUENCE billing_ratecard_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_ratecard.id;
ALTER SEQUENCE billing_stripecommand_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripecommand.id;
ALTER SEQUENCE billing_stripecustomer_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripecustomer.id;
ALTER SEQUENCE billing_stripeday_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripeday.id;
ALTER SEQUENCE billing_stripedifference_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripedifference.id;
ALTER SEQUENCE billing_stripepace_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripepace.id;
ALTER SEQUENCE billing_stripeseen_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_stripeseen.id;
ALTER SEQUENCE billing_tenantterms_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_tenantterms.id;
ALTER SEQUENCE billing_tokenday_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_tokenday.id;
ALTER SEQUENCE billing_tokenlease_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_tokenlease.id;
ALTER SEQUENCE billing_tokenpart_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_tokenpart.id;
ALTER SEQUENCE billing_wallet_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_wallet.id;
ALTER SEQUENCE billing_walletpart_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF billing_walletpart.id;
ALTER SEQUENCE broker_clusterobject_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_clusterobject.id;
ALTER SEQUENCE broker_clusterwatch_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_clusterwatch.id;
ALTER SEQUENCE broker_inventorychange_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_inventorychange.id;
ALTER SEQUENCE broker_layoutstep_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_layoutstep.id;
ALTER SEQUENCE broker_moveentry_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_moveentry.id;
ALTER SEQUENCE broker_orphan_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF broker_orphan.id;
ALTER SEQUENCE broker_transition_position AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1;
ALTER SEQUENCE django_content_type_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF django_content_type.id;
ALTER SEQUENCE django_migrations_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF django_migrations.id;
ALTER SEQUENCE mfa_authenticator_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF mfa_authenticator.id;
ALTER SEQUENCE ports_ring_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF ports_ring.id;
ALTER SEQUENCE socialaccount_socialaccount_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF socialaccount_socialaccount.id;
ALTER SEQUENCE socialaccount_socialapp_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF socialaccount_socialapp.id;
ALTER SEQUENCE socialaccount_socialtoken_id_seq AS integer START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 IDENTITY OF socialaccount_socialtoken.id;
ALTER SEQUENCE tenants_storedanswer_id_seq AS bigint START 1 INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1 IDENTITY OF tenants_storedanswer.id;
ALTER TABLE account_emailaddress ADD COLUMN "primary" boolean NOT NULL;
ALTER TABLE account_emailaddress ADD COLUMN email character varying(254) NOT NULL;
ALTER TABLE account_emailaddress ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE account_emailaddress ADD COLUMN user_id character varying(40) NOT NULL;
ALTER TABLE account_emailaddress ADD COLUMN verified boolean NOT NULL;
ALTER TABLE account_emailaddress ADD CONSTRAINT (generated) FOREIGN KEY (user_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE account_emailaddress ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE account_emailaddress ADD CONSTRAINT (generated) UNIQUE (user_id, email);
ALTER TABLE account_emailconfirmation ADD COLUMN created timestamp with time zone NOT NULL;
ALTER TABLE account_emailconfirmation ADD COLUMN email_address_id integer NOT NULL;
ALTER TABLE account_emailconfirmation ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE account_emailconfirmation ADD COLUMN key character varying(64) NOT NULL;
ALTER TABLE account_emailconfirmation ADD COLUMN sent timestamp with time zone;
ALTER TABLE account_emailconfirmation ADD CONSTRAINT (generated) FOREIGN KEY (email_address_id) REFERENCES account_emailaddress(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE account_emailconfirmation ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE account_emailconfirmation ADD CONSTRAINT (generated) UNIQUE (key);
ALTER TABLE auth_group ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE auth_group ADD COLUMN name character varying(150) NOT NULL;
ALTER TABLE auth_group ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE auth_group ADD CONSTRAINT (generated) UNIQUE (name);
ALTER TABLE auth_group_permissions ADD COLUMN group_id integer NOT NULL;
ALTER TABLE auth_group_permissions ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE auth_group_permissions ADD COLUMN permission_id integer NOT NULL;
ALTER TABLE auth_group_permissions ADD CONSTRAINT (generated) FOREIGN KEY (group_id) REFERENCES auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE auth_group_permissions ADD CONSTRAINT (generated) FOREIGN KEY (permission_id) REFERENCES auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE auth_group_permissions ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE auth_group_permissions ADD CONSTRAINT (generated) UNIQUE (group_id, permission_id);
ALTER TABLE auth_permission ADD COLUMN codename character varying(100) NOT NULL;
ALTER TABLE auth_permission ADD COLUMN content_type_id integer NOT NULL;
ALTER TABLE auth_permission ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE auth_permission ADD COLUMN name character varying(255) NOT NULL;
ALTER TABLE auth_permission ADD CONSTRAINT (generated) FOREIGN KEY (content_type_id) REFERENCES django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE auth_permission ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE auth_permission ADD CONSTRAINT (generated) UNIQUE (content_type_id, codename);
ALTER TABLE billing_accountbalance ADD COLUMN account_id bigint NOT NULL;
ALTER TABLE billing_accountbalance ADD COLUMN floor bigint;
ALTER TABLE billing_accountbalance ADD COLUMN held_minor bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_accountbalance ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_accountbalance ADD COLUMN tenant_id character varying(40);
ALTER TABLE billing_accountbalance ADD CONSTRAINT (generated) FOREIGN KEY (account_id) REFERENCES billing_ledgeraccount(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_accountbalance ADD CONSTRAINT (generated) PRIMARY KEY (account_id);
ALTER TABLE billing_accountbalance ADD CONSTRAINT balance_above_its_floor CHECK (((floor IS NULL) OR (minor >= (floor + held_minor))));
ALTER TABLE billing_accountbalance ADD CONSTRAINT balance_holds_no_less_than_nothing CHECK ((held_minor >= 0));
ALTER TABLE billing_autotopup ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_autotopup ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_autotopup ADD COLUMN set_at timestamp with time zone NOT NULL;
ALTER TABLE billing_autotopup ADD COLUMN stopped_at timestamp with time zone;
ALTER TABLE billing_autotopup ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_autotopup ADD COLUMN threshold_minor bigint NOT NULL;
ALTER TABLE billing_autotopup ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE billing_autotopup ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_autotopup ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_autotopup ADD CONSTRAINT auto_topup_of_something CHECK (((minor > 0) AND (threshold_minor > 0)));
ALTER TABLE billing_autotopup ADD CONSTRAINT auto_topup_once_a_tenant UNIQUE (tenant_id);
ALTER TABLE billing_balancedraw ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_balancedraw ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_balancedraw ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_balancedraw ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_balancedraw ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_balancedraw ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_balancedraw ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_balancedraw ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_balancedraw ADD CONSTRAINT (generated) UNIQUE (invoice_id);
ALTER TABLE billing_balancedraw ADD CONSTRAINT draw_of_something CHECK ((minor > 0));
ALTER TABLE billing_billingdetails ADD COLUMN changed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN city character varying(120) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN country character varying(2) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN email character varying(254) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN extra character varying(120) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN letters boolean NOT NULL DEFAULT true;
ALTER TABLE billing_billingdetails ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN postcode character varying(20) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN street character varying(120) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN vat_id character varying(20) NOT NULL;
ALTER TABLE billing_billingdetails ADD COLUMN version integer NOT NULL;
ALTER TABLE billing_billingdetails ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE billing_billingdetails ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_billingdetails ADD CONSTRAINT (generated) PRIMARY KEY (tenant_id);
ALTER TABLE billing_billingperiod ADD COLUMN closed_at timestamp with time zone;
ALTER TABLE billing_billingperiod ADD COLUMN held_up character varying(300) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_billingperiod ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_billingperiod ADD COLUMN label character varying(7) NOT NULL;
ALTER TABLE billing_billingperiod ADD COLUMN span tstzrange NOT NULL;
ALTER TABLE billing_billingperiod ADD COLUMN status character varying(6) NOT NULL;
ALTER TABLE billing_billingperiod ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_billingperiod ADD COLUMN time_zone character varying(60) NOT NULL;
ALTER TABLE billing_billingperiod ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_billingperiod ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_billingperiod ADD CONSTRAINT period_once UNIQUE (tenant_id, label);
ALTER TABLE billing_billingperiod ADD CONSTRAINT period_status_known CHECK (((status)::text = ANY ((ARRAY['open'::character varying, 'closed'::character varying])::text[])));
ALTER TABLE billing_billingperiod ADD CONSTRAINT periods_never_overlap EXCLUDE USING gist (tenant_id WITH =, span WITH &&);
ALTER TABLE billing_billingrun ADD COLUMN finished_at timestamp with time zone;
ALTER TABLE billing_billingrun ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_billingrun ADD COLUMN label character varying(80) NOT NULL;
ALTER TABLE billing_billingrun ADD COLUMN started_at timestamp with time zone NOT NULL;
ALTER TABLE billing_billingrun ADD COLUMN tzdata_version character varying(20) NOT NULL;
ALTER TABLE billing_billingrun ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_billingrun ADD CONSTRAINT (generated) UNIQUE (label);
ALTER TABLE billing_budget ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_budget ADD COLUMN forecast_thresholds smallint[] NOT NULL DEFAULT ('{80,100}'::bigint[])::smallint[];
ALTER TABLE billing_budget ADD COLUMN grace_minutes smallint NOT NULL DEFAULT 60;
ALTER TABLE billing_budget ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_budget ADD COLUMN limit_minor bigint NOT NULL;
ALTER TABLE billing_budget ADD COLUMN looked_at timestamp with time zone;
ALTER TABLE billing_budget ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_budget ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_budget ADD COLUMN stop_all_at smallint;
ALTER TABLE billing_budget ADD COLUMN stop_idle_at smallint;
ALTER TABLE billing_budget ADD COLUMN stop_new_at smallint DEFAULT 100;
ALTER TABLE billing_budget ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_budget ADD COLUMN thresholds smallint[] NOT NULL DEFAULT ('{50,80,100}'::bigint[])::smallint[];
ALTER TABLE billing_budget ADD COLUMN version integer NOT NULL;
ALTER TABLE billing_budget ADD CONSTRAINT (generated) CHECK ((grace_minutes >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT (generated) CHECK ((stop_all_at >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT (generated) CHECK ((stop_idle_at >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT (generated) CHECK ((stop_new_at >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budget ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budget ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_budget ADD CONSTRAINT budget_not_negative CHECK ((limit_minor >= 0));
ALTER TABLE billing_budget ADD CONSTRAINT budget_once_per_node UNIQUE (tenant_id, project_id);
ALTER TABLE billing_budgetalert ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN budget_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN lifted_at timestamp with time zone;
ALTER TABLE billing_budgetalert ADD COLUMN limit_minor bigint NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN measure character varying(8) NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN percent smallint NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_budgetalert ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetalert ADD CONSTRAINT (generated) CHECK ((percent >= 0));
ALTER TABLE billing_budgetalert ADD CONSTRAINT (generated) FOREIGN KEY (budget_id) REFERENCES billing_budget(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetalert ADD CONSTRAINT (generated) FOREIGN KEY (period_id) REFERENCES billing_billingperiod(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetalert ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetalert ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_budgetalert ADD CONSTRAINT budget_alert_known CHECK (((measure)::text = ANY ((ARRAY['spent'::character varying, 'forecast'::character varying])::text[])));
ALTER TABLE billing_budgetmonth ADD COLUMN base_num numeric(38,0) NOT NULL;
ALTER TABLE billing_budgetmonth ADD COLUMN budget_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetmonth ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_budgetmonth ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_budgetmonth ADD COLUMN spent_num numeric(38,0) NOT NULL;
ALTER TABLE billing_budgetmonth ADD COLUMN taken_num numeric(38,0) NOT NULL;
ALTER TABLE billing_budgetmonth ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetmonth ADD CONSTRAINT (generated) FOREIGN KEY (budget_id) REFERENCES billing_budget(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetmonth ADD CONSTRAINT (generated) FOREIGN KEY (period_id) REFERENCES billing_billingperiod(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetmonth ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetmonth ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_budgetmonth ADD CONSTRAINT budget_month_adds_up CHECK (((base_num >= (0)::numeric) AND (spent_num >= base_num) AND (taken_num >= spent_num)));
ALTER TABLE billing_budgetmonth ADD CONSTRAINT budget_month_once UNIQUE (tenant_id, budget_id, period_id);
ALTER TABLE billing_budgetstop ADD COLUMN budget_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN done_at timestamp with time zone;
ALTER TABLE billing_budgetstop ADD COLUMN due_at timestamp with time zone NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN ended integer NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN lifted_at timestamp with time zone;
ALTER TABLE billing_budgetstop ADD COLUMN limit_minor bigint NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN looked_at timestamp with time zone;
ALTER TABLE billing_budgetstop ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN percent smallint NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN told_at timestamp with time zone NOT NULL;
ALTER TABLE billing_budgetstop ADD COLUMN trouble character varying(300) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_budgetstop ADD COLUMN what character varying(4) NOT NULL;
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) CHECK ((ended >= 0));
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) CHECK ((percent >= 0));
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) FOREIGN KEY (budget_id) REFERENCES billing_budget(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) FOREIGN KEY (period_id) REFERENCES billing_billingperiod(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_budgetstop ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_budgetstop ADD CONSTRAINT budget_stop_known CHECK (((what)::text = ANY ((ARRAY['idle'::character varying, 'all'::character varying])::text[])));
ALTER TABLE billing_budgetstop ADD CONSTRAINT budget_stop_told_first CHECK ((due_at >= told_at));
ALTER TABLE billing_campaign ADD COLUMN code character varying(40) NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN created_by character varying(254) NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN minor bigint;
ALTER TABLE billing_campaign ADD COLUMN months smallint;
ALTER TABLE billing_campaign ADD COLUMN most integer;
ALTER TABLE billing_campaign ADD COLUMN name character varying(80) NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN offerings character varying(40)[] NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN percent_bp integer;
ALTER TABLE billing_campaign ADD COLUMN price_classes character varying(12)[] NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN redeemed integer NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN since timestamp with time zone NOT NULL;
ALTER TABLE billing_campaign ADD COLUMN until timestamp with time zone;
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) CHECK ((months >= 0));
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) CHECK ((most >= 0));
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) CHECK ((percent_bp >= 0));
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) CHECK ((redeemed >= 0));
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_campaign ADD CONSTRAINT (generated) UNIQUE (code);
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_lasts CHECK (((until IS NULL) OR (until > since)));
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_not_used_up_twice CHECK (((most IS NULL) OR (redeemed <= most)));
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_of_a_currency CHECK (((minor IS NULL) = ((currency)::text = ''::text)));
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_of_months CHECK (((months IS NULL) OR (months > 0)));
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_of_something CHECK ((((minor IS NULL) AND (percent_bp > 0) AND (percent_bp <= 10000)) OR ((minor > 0) AND (percent_bp IS NULL))));
ALTER TABLE billing_campaign ADD CONSTRAINT campaign_of_what_there_is CHECK (((minor IS NULL) OR ((minor)::double precision <= ((10)::double precision ^ (15)::double precision))));
ALTER TABLE billing_cardform ADD COLUMN asked_at timestamp with time zone NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN asked_by character varying(200) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_cardform ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN session_id character varying(120) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_cardform ADD COLUMN state character varying(6) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN tries integer NOT NULL;
ALTER TABLE billing_cardform ADD COLUMN url text NOT NULL;
ALTER TABLE billing_cardform ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_cardform ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_cardform ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_cardform ADD CONSTRAINT card_form_state_known CHECK (((state)::text = ANY ((ARRAY['wanted'::character varying, 'open'::character varying, 'saved'::character varying, 'failed'::character varying])::text[])));
ALTER TABLE billing_commitment ADD COLUMN agreed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN agreed_by character varying(254) NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN nano_per_hour bigint NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN units integer NOT NULL;
ALTER TABLE billing_commitment ADD COLUMN valid tstzrange NOT NULL;
ALTER TABLE billing_commitment ADD CONSTRAINT (generated) CHECK ((units >= 0));
ALTER TABLE billing_commitment ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_commitment ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_commitment ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_commitment ADD CONSTRAINT commitment_lasts CHECK ((NOT isempty(valid)));
ALTER TABLE billing_commitment ADD CONSTRAINT commitment_of_something CHECK (((nano_per_hour > 0) AND (units > 0)));
ALTER TABLE billing_commitment ADD CONSTRAINT one_commitment_at_a_time EXCLUDE USING gist (tenant_id WITH =, offering_id WITH =, valid WITH &&);
ALTER TABLE billing_correction ADD COLUMN approved_at timestamp with time zone;
ALTER TABLE billing_correction ADD COLUMN approver character varying(254) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN approver_id character varying(40);
ALTER TABLE billing_correction ADD COLUMN author character varying(254) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN author_id character varying(40) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN charge boolean NOT NULL;
ALTER TABLE billing_correction ADD COLUMN closed_at timestamp with time zone;
ALTER TABLE billing_correction ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN kind character varying(5) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN limit_minor bigint NOT NULL;
ALTER TABLE billing_correction ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_correction ADD COLUMN nano_per_hour bigint;
ALTER TABLE billing_correction ADD COLUMN price_version_id bigint;
ALTER TABLE billing_correction ADD COLUMN proposed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_correction ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN seal character varying(64) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN second_approved_at timestamp with time zone;
ALTER TABLE billing_correction ADD COLUMN second_approver character varying(254) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN second_approver_id character varying(40);
ALTER TABLE billing_correction ADD COLUMN since timestamp with time zone NOT NULL;
ALTER TABLE billing_correction ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_correction ADD COLUMN until timestamp with time zone NOT NULL;
ALTER TABLE billing_correction ADD CONSTRAINT (generated) FOREIGN KEY (price_version_id) REFERENCES billing_priceversion(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_correction ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_correction ADD CONSTRAINT correction_by_different_people CHECK ((((approver_id IS NULL) OR (NOT (((approver_id)::text = (author_id)::text) AND (approver_id IS NOT NULL)))) AND ((second_approver_id IS NULL) OR ((NOT (((second_approver_id)::text = (author_id)::text) AND (second_approver_id IS NOT NULL))) AND (NOT (((second_approver_id)::text = (approver_id)::text) AND (second_approver_id IS NOT NULL) AND (approver_id IS NOT NULL)))))));
ALTER TABLE billing_correction ADD CONSTRAINT correction_first_before_second CHECK (((second_approver_id IS NULL) OR (approver_id IS NOT NULL)));
ALTER TABLE billing_correction ADD CONSTRAINT correction_is_approved_first CHECK (((NOT ((status)::text = ANY ((ARRAY['approved'::character varying, 'booked'::character varying])::text[]))) OR ((approver_id IS NOT NULL) AND ((minor < limit_minor) OR (second_approver_id IS NOT NULL)))));
ALTER TABLE billing_correction ADD CONSTRAINT correction_of_one_thing CHECK (((((kind)::text = 'lease'::text) AND (nano_per_hour IS NULL) AND (price_version_id IS NULL) AND (NOT ((lease_id)::text = ''::text))) OR (((kind)::text = 'price'::text) AND ((lease_id)::text = ''::text) AND (nano_per_hour >= 0) AND (price_version_id IS NOT NULL))));
ALTER TABLE billing_correction ADD CONSTRAINT correction_of_some_time CHECK ((since < until));
ALTER TABLE billing_correctionpart ADD COLUMN billed_period_id bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN e timestamp with time zone NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN exact_num numeric(38,0) NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN final boolean NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_correctionpart ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN n integer NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN nano_per_hour bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN price_version_id bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN quantity integer NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN s timestamp with time zone NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN seq integer NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN share_id bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionpart ADD COLUMN unit_seconds bigint NOT NULL;
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) CHECK ((quantity >= 0));
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) FOREIGN KEY (share_id) REFERENCES billing_correctionshare(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_correctionpart ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_correctionpart ADD CONSTRAINT correction_part_of_some_time CHECK ((s < e));
ALTER TABLE billing_correctionpart ADD CONSTRAINT correction_part_once UNIQUE (tenant_id, share_id, n);
ALTER TABLE billing_correctionshare ADD COLUMN correction_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN diff jsonb NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_correctionshare ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN seal character varying(64) NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_correctionshare ADD COLUMN status character varying(8) NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_correctionshare ADD COLUMN trouble character varying(300) NOT NULL;
ALTER TABLE billing_correctionshare ADD CONSTRAINT (generated) FOREIGN KEY (correction_id) REFERENCES billing_correction(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_correctionshare ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_correctionshare ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_correctionshare ADD CONSTRAINT correction_once_a_tenant UNIQUE (correction_id, tenant_id);
ALTER TABLE billing_correctionshare ADD CONSTRAINT share_settled_at_a_moment CHECK ((((settled_at IS NULL) AND ((status)::text = 'waiting'::text)) OR ((NOT ((status)::text = 'waiting'::text)) AND (NOT (settled_at IS NULL)))));
ALTER TABLE billing_creditnote ADD COLUMN correction_id character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_creditnote ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN issued_at timestamp with time zone NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN issued_by character varying(40) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN number integer NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN off_due bigint NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN series character varying(20) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN tax bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_creditnote ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_creditnote ADD COLUMN to_grants bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_creditnote ADD COLUMN total bigint NOT NULL;
ALTER TABLE billing_creditnote ADD CONSTRAINT (generated) CHECK ((number >= 0));
ALTER TABLE billing_creditnote ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_creditnote ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_creditnote ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_creditnote ADD CONSTRAINT credit_note_number_once UNIQUE (series, number);
ALTER TABLE billing_creditnote ADD CONSTRAINT credit_of_something CHECK (((off_due >= 0) AND (off_due <= total) AND (total > 0)));
ALTER TABLE billing_creditnote ADD CONSTRAINT credit_to_grants_is_a_part CHECK (((to_grants >= 0) AND (to_grants <= (total - off_due))));
ALTER TABLE billing_creditnote ADD CONSTRAINT sum_of_its_lines DEFERRABLE TRIGGER;
ALTER TABLE billing_creditnote ADD CONSTRAINT sum_of_its_returns DEFERRABLE TRIGGER;
ALTER TABLE billing_creditnoteline ADD COLUMN credit_note_id character varying(40) NOT NULL;
ALTER TABLE billing_creditnoteline ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_creditnoteline ADD COLUMN line_id bigint NOT NULL;
ALTER TABLE billing_creditnoteline ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_creditnoteline ADD COLUMN tax_minor bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_creditnoteline ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_creditnoteline ADD CONSTRAINT (generated) FOREIGN KEY (credit_note_id) REFERENCES billing_creditnote(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_creditnoteline ADD CONSTRAINT (generated) FOREIGN KEY (line_id) REFERENCES billing_invoiceline(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_creditnoteline ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_creditnoteline ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_creditnoteline ADD CONSTRAINT credit_line_of_something CHECK ((minor > 0));
ALTER TABLE billing_creditnoteline ADD CONSTRAINT line_credited_once_a_note UNIQUE (credit_note_id, line_id);
ALTER TABLE billing_discount ADD COLUMN campaign_id character varying(40);
ALTER TABLE billing_discount ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_discount ADD COLUMN first_month character varying(7) NOT NULL;
ALTER TABLE billing_discount ADD COLUMN given_at timestamp with time zone NOT NULL;
ALTER TABLE billing_discount ADD COLUMN given_by character varying(254) NOT NULL;
ALTER TABLE billing_discount ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_discount ADD COLUMN last_month character varying(7);
ALTER TABLE billing_discount ADD COLUMN minor bigint;
ALTER TABLE billing_discount ADD COLUMN name character varying(80) NOT NULL;
ALTER TABLE billing_discount ADD COLUMN offerings character varying(40)[] NOT NULL;
ALTER TABLE billing_discount ADD COLUMN percent_bp integer;
ALTER TABLE billing_discount ADD COLUMN price_classes character varying(12)[] NOT NULL;
ALTER TABLE billing_discount ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_discount ADD CONSTRAINT (generated) CHECK ((percent_bp >= 0));
ALTER TABLE billing_discount ADD CONSTRAINT (generated) FOREIGN KEY (campaign_id) REFERENCES billing_campaign(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_discount ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_discount ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_discount ADD CONSTRAINT campaign_redeemed_once UNIQUE (tenant_id, campaign_id);
ALTER TABLE billing_discount ADD CONSTRAINT discount_of_a_currency CHECK (((minor IS NULL) = ((currency)::text = ''::text)));
ALTER TABLE billing_discount ADD CONSTRAINT discount_of_months CHECK ((((first_month)::text ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$'::text) AND ((last_month IS NULL) OR ((last_month)::text ~ '^2[0-9]{3}-(0[1-9]|1[0-2])$'::text))));
ALTER TABLE billing_discount ADD CONSTRAINT discount_of_something CHECK ((((minor IS NULL) AND (percent_bp > 0) AND (percent_bp <= 10000)) OR ((minor > 0) AND (percent_bp IS NULL))));
ALTER TABLE billing_discount ADD CONSTRAINT discount_of_what_there_is CHECK (((minor IS NULL) OR ((minor)::double precision <= ((10)::double precision ^ (15)::double precision))));
ALTER TABLE billing_dispute ADD COLUMN answer character varying(500) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN closed_at timestamp with time zone;
ALTER TABLE billing_dispute ADD COLUMN credit_note_id character varying(40);
ALTER TABLE billing_dispute ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN line_id bigint NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN opened_by character varying(254) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN reason character varying(500) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN tax_minor bigint NOT NULL;
ALTER TABLE billing_dispute ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_dispute ADD CONSTRAINT (generated) FOREIGN KEY (credit_note_id) REFERENCES billing_creditnote(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dispute ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dispute ADD CONSTRAINT (generated) FOREIGN KEY (line_id) REFERENCES billing_invoiceline(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dispute ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dispute ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_dispute ADD CONSTRAINT accepted_is_given_back CHECK ((((credit_note_id IS NOT NULL) AND ((status)::text = 'accepted'::text)) OR ((NOT ((status)::text = 'accepted'::text)) AND (credit_note_id IS NULL))));
ALTER TABLE billing_dispute ADD CONSTRAINT declined_for_a_reason CHECK (((NOT ((status)::text = 'declined'::text)) OR (NOT ((answer)::text = ''::text))));
ALTER TABLE billing_dispute ADD CONSTRAINT dispute_ends_at_a_moment CHECK ((((closed_at IS NULL) AND ((status)::text = 'open'::text)) OR ((closed_at IS NOT NULL) AND ((status)::text = ANY ((ARRAY['accepted'::character varying, 'declined'::character varying, 'withdrawn'::character varying])::text[])))));
ALTER TABLE billing_dispute ADD CONSTRAINT dispute_of_something CHECK (((minor > 0) AND (tax_minor >= 0)));
ALTER TABLE billing_disputestep ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN by character varying(254) NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN dispute_id character varying(40) NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_disputestep ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN n smallint NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_disputestep ADD COLUMN words character varying(500) NOT NULL;
ALTER TABLE billing_disputestep ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_disputestep ADD CONSTRAINT (generated) FOREIGN KEY (dispute_id) REFERENCES billing_dispute(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_disputestep ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_disputestep ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_disputestep ADD CONSTRAINT dispute_has_two_steps CHECK ((((n = 0) AND ((status)::text = 'open'::text)) OR ((n = 1) AND (NOT ((status)::text = 'open'::text)))));
ALTER TABLE billing_disputestep ADD CONSTRAINT dispute_step_known CHECK (((status)::text = ANY ((ARRAY['open'::character varying, 'accepted'::character varying, 'declined'::character varying, 'withdrawn'::character varying])::text[])));
ALTER TABLE billing_disputestep ADD CONSTRAINT dispute_step_once UNIQUE (tenant_id, dispute_id, n);
ALTER TABLE billing_dunningstep ADD COLUMN action character varying(10) NOT NULL;
ALTER TABLE billing_dunningstep ADD COLUMN done_at timestamp with time zone NOT NULL;
ALTER TABLE billing_dunningstep ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_dunningstep ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_dunningstep ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_dunningstep ADD COLUMN n smallint NOT NULL;
ALTER TABLE billing_dunningstep ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_dunningstep ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_dunningstep ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dunningstep ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_dunningstep ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_dunningstep ADD CONSTRAINT dunning_action_known CHECK (((action)::text = ANY ((ARRAY['remind'::character varying, 'suspend'::character varying, 'end'::character varying])::text[])));
ALTER TABLE billing_dunningstep ADD CONSTRAINT dunning_of_something CHECK ((minor > 0));
ALTER TABLE billing_dunningstep ADD CONSTRAINT dunning_step_once UNIQUE (tenant_id, invoice_id, n);
ALTER TABLE billing_grant ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN expires_at timestamp with time zone;
ALTER TABLE billing_grant ADD COLUMN given_at timestamp with time zone NOT NULL;
ALTER TABLE billing_grant ADD COLUMN given_by character varying(40) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN idem character varying(120) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_grant ADD COLUMN offering_id character varying(40);
ALTER TABLE billing_grant ADD COLUMN priority smallint NOT NULL;
ALTER TABLE billing_grant ADD COLUMN project_id character varying(40);
ALTER TABLE billing_grant ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN source character varying(10) NOT NULL;
ALTER TABLE billing_grant ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_grant ADD CONSTRAINT (generated) CHECK ((priority >= 0));
ALTER TABLE billing_grant ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grant ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grant ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grant ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_grant ADD CONSTRAINT grant_given_once UNIQUE (tenant_id, idem);
ALTER TABLE billing_grant ADD CONSTRAINT grant_lasts_a_while CHECK (((expires_at IS NULL) OR (expires_at > given_at)));
ALTER TABLE billing_grant ADD CONSTRAINT grant_of_something CHECK ((minor > 0));
ALTER TABLE billing_grant ADD CONSTRAINT grant_source_known CHECK (((source)::text = ANY ((ARRAY['operator'::character varying, 'breach'::character varying, 'coupon'::character varying])::text[])));
ALTER TABLE billing_grantdraw ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN grant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN line_id bigint NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_grantdraw ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantdraw ADD CONSTRAINT (generated) FOREIGN KEY (grant_id) REFERENCES billing_grant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantdraw ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantdraw ADD CONSTRAINT (generated) FOREIGN KEY (line_id) REFERENCES billing_invoiceline(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantdraw ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantdraw ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_grantdraw ADD CONSTRAINT grant_draw_of_something CHECK ((minor > 0));
ALTER TABLE billing_grantdraw ADD CONSTRAINT grant_draws_once_a_line UNIQUE (grant_id, line_id);
ALTER TABLE billing_grantlapse ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_grantlapse ADD COLUMN grant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantlapse ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_grantlapse ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_grantlapse ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantlapse ADD CONSTRAINT (generated) FOREIGN KEY (grant_id) REFERENCES billing_grant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantlapse ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantlapse ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_grantlapse ADD CONSTRAINT (generated) UNIQUE (grant_id);
ALTER TABLE billing_grantlapse ADD CONSTRAINT grant_lapse_not_negative CHECK ((minor >= 0));
ALTER TABLE billing_grantreturn ADD COLUMN credit_note_id character varying(40) NOT NULL;
ALTER TABLE billing_grantreturn ADD COLUMN grant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantreturn ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_grantreturn ADD COLUMN lapsed boolean NOT NULL;
ALTER TABLE billing_grantreturn ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_grantreturn ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_grantreturn ADD CONSTRAINT (generated) FOREIGN KEY (credit_note_id) REFERENCES billing_creditnote(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantreturn ADD CONSTRAINT (generated) FOREIGN KEY (grant_id) REFERENCES billing_grant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantreturn ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_grantreturn ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_grantreturn ADD CONSTRAINT grant_return_of_something CHECK ((minor > 0));
ALTER TABLE billing_grantreturn ADD CONSTRAINT grant_returned_once_a_note UNIQUE (credit_note_id, grant_id);
ALTER TABLE billing_hold ADD COLUMN covers_until timestamp with time zone;
ALTER TABLE billing_hold ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_hold ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_hold ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_hold ADD COLUMN looked_at timestamp with time zone NOT NULL;
ALTER TABLE billing_hold ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_hold ADD COLUMN seq integer NOT NULL;
ALTER TABLE billing_hold ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_hold ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_hold ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE billing_hold ADD CONSTRAINT (generated) FOREIGN KEY (lease_id) REFERENCES broker_lease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_hold ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_hold ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_hold ADD CONSTRAINT (generated) UNIQUE (lease_id);
ALTER TABLE billing_holdpart ADD COLUMN hold_id character varying(40) NOT NULL;
ALTER TABLE billing_holdpart ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_holdpart ADD COLUMN month_id bigint NOT NULL;
ALTER TABLE billing_holdpart ADD COLUMN num numeric(38,0) NOT NULL;
ALTER TABLE billing_holdpart ADD COLUMN spent_num numeric(38,0) NOT NULL;
ALTER TABLE billing_holdpart ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_holdpart ADD CONSTRAINT (generated) FOREIGN KEY (hold_id) REFERENCES billing_hold(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_holdpart ADD CONSTRAINT (generated) FOREIGN KEY (month_id) REFERENCES billing_budgetmonth(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_holdpart ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_holdpart ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_holdpart ADD CONSTRAINT hold_part_covers CHECK (((num >= spent_num) AND (spent_num >= (0)::numeric)));
ALTER TABLE billing_holdpart ADD CONSTRAINT hold_part_once UNIQUE (tenant_id, hold_id, month_id);
ALTER TABLE billing_invoice ADD COLUMN agreed text;
ALTER TABLE billing_invoice ADD COLUMN collected boolean NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN customer jsonb;
ALTER TABLE billing_invoice ADD COLUMN disputable_until timestamp with time zone;
ALTER TABLE billing_invoice ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_invoice ADD COLUMN finalized_at timestamp with time zone;
ALTER TABLE billing_invoice ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN number integer;
ALTER TABLE billing_invoice ADD COLUMN paid_at timestamp with time zone;
ALTER TABLE billing_invoice ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN refreshed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN series character varying(20);
ALTER TABLE billing_invoice ADD COLUMN settled bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_invoice ADD COLUMN status character varying(14) NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN supplier jsonb;
ALTER TABLE billing_invoice ADD COLUMN tax bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_invoice ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN total bigint NOT NULL;
ALTER TABLE billing_invoice ADD COLUMN treatment character varying(14) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_invoice ADD CONSTRAINT (generated) CHECK ((number >= 0));
ALTER TABLE billing_invoice ADD CONSTRAINT (generated) FOREIGN KEY (period_id) REFERENCES billing_billingperiod(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoice ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoice ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_invoice ADD CONSTRAINT invoice_number_once UNIQUE (series, number);
ALTER TABLE billing_invoice ADD CONSTRAINT invoice_status_known CHECK (((status)::text = ANY ((ARRAY['draft'::character varying, 'closing'::character varying, 'finalized'::character varying, 'paid'::character varying, 'partially_paid'::character varying, 'uncollectible'::character varying, 'void'::character varying])::text[])));
ALTER TABLE billing_invoice ADD CONSTRAINT paid_at_a_moment CHECK (((NOT ((status)::text = 'paid'::text)) OR (paid_at IS NOT NULL)));
ALTER TABLE billing_invoice ADD CONSTRAINT settled_is_a_part_of_it CHECK (((settled = 0) OR ((number IS NOT NULL) AND (settled > 0) AND (settled <= total))));
ALTER TABLE billing_invoice ADD CONSTRAINT treatment_known CHECK (((treatment)::text = ANY ((ARRAY[''::character varying, 'domestic'::character varying, 'destination'::character varying, 'reverse_charge'::character varying, 'outside'::character varying])::text[])));
ALTER TABLE billing_invoiceline ADD COLUMN exact_num numeric(38,0) NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN given_back_s bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_invoiceline ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_invoiceline ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN kind character varying(9) NOT NULL DEFAULT 'usage'::character varying;
ALTER TABLE billing_invoiceline ADD COLUMN leases integer NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN month_num numeric(38,0) NOT NULL DEFAULT 0;
ALTER TABLE billing_invoiceline ADD COLUMN n integer NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN price_version_id bigint NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN tax_category character varying(10) NOT NULL DEFAULT 'standard'::character varying;
ALTER TABLE billing_invoiceline ADD COLUMN tax_minor bigint NOT NULL DEFAULT 0;
ALTER TABLE billing_invoiceline ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_invoiceline ADD COLUMN unit_seconds bigint NOT NULL;
ALTER TABLE billing_invoiceline ADD CONSTRAINT (generated) CHECK ((leases >= 0));
ALTER TABLE billing_invoiceline ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_invoiceline ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoiceline ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoiceline ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_invoiceline ADD CONSTRAINT line_number_once UNIQUE (invoice_id, n);
ALTER TABLE billing_invoiceline ADD CONSTRAINT line_once UNIQUE (invoice_id, project_id, offering_id, price_version_id);
ALTER TABLE billing_invoiceseries ADD COLUMN next_number integer NOT NULL;
ALTER TABLE billing_invoiceseries ADD COLUMN series character varying(20) NOT NULL;
ALTER TABLE billing_invoiceseries ADD CONSTRAINT (generated) CHECK ((next_number >= 0));
ALTER TABLE billing_invoiceseries ADD CONSTRAINT (generated) PRIMARY KEY (series);
ALTER TABLE billing_invoicetax ADD COLUMN category character varying(10) NOT NULL;
ALTER TABLE billing_invoicetax ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_invoicetax ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_invoicetax ADD COLUMN net bigint NOT NULL;
ALTER TABLE billing_invoicetax ADD COLUMN rate_bp integer;
ALTER TABLE billing_invoicetax ADD COLUMN rate_id character varying(40);
ALTER TABLE billing_invoicetax ADD COLUMN tax bigint NOT NULL;
ALTER TABLE billing_invoicetax ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_invoicetax ADD CONSTRAINT (generated) CHECK ((rate_bp >= 0));
ALTER TABLE billing_invoicetax ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoicetax ADD CONSTRAINT (generated) FOREIGN KEY (rate_id) REFERENCES billing_taxrate(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoicetax ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_invoicetax ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_invoicetax ADD CONSTRAINT invoice_tax_known CHECK (((category)::text = ANY ((ARRAY['standard'::character varying, 'reduced'::character varying, 'exempt'::character varying])::text[])));
ALTER TABLE billing_invoicetax ADD CONSTRAINT no_tax_without_rate CHECK (((rate_bp IS NOT NULL) OR (tax = 0)));
ALTER TABLE billing_invoicetax ADD CONSTRAINT one_tax_per_category UNIQUE (invoice_id, category);
ALTER TABLE billing_keptpaper ADD COLUMN content_sha256 character varying(64) NOT NULL;
ALTER TABLE billing_keptpaper ADD COLUMN credit_note_id character varying(40);
ALTER TABLE billing_keptpaper ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_keptpaper ADD COLUMN invoice_id character varying(40);
ALTER TABLE billing_keptpaper ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_keptpaper ADD COLUMN pdf bytea NOT NULL;
ALTER TABLE billing_keptpaper ADD COLUMN pdf_sha256 character varying(64) NOT NULL;
ALTER TABLE billing_keptpaper ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) FOREIGN KEY (credit_note_id) REFERENCES billing_creditnote(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) UNIQUE (credit_note_id);
ALTER TABLE billing_keptpaper ADD CONSTRAINT (generated) UNIQUE (invoice_id);
ALTER TABLE billing_keptpaper ADD CONSTRAINT paper_of_one_thing CHECK ((((credit_note_id IS NULL) AND (invoice_id IS NOT NULL)) OR ((credit_note_id IS NOT NULL) AND (invoice_id IS NULL))));
ALTER TABLE billing_ledgeraccount ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_ledgeraccount ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_ledgeraccount ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_ledgeraccount ADD COLUMN ref character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_ledgeraccount ADD COLUMN tenant_id character varying(40);
ALTER TABLE billing_ledgeraccount ADD COLUMN type character varying(12) NOT NULL;
ALTER TABLE billing_ledgeraccount ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_ledgeraccount ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_ledgeraccount ADD CONSTRAINT ledger_account_is_somebodys CHECK ((((tenant_id IS NOT NULL) AND ((type)::text = ANY ((ARRAY['accrued'::character varying, 'receivable'::character varying, 'wallet_paid'::character varying, 'wallet_promo'::character varying])::text[]))) OR ((tenant_id IS NULL) AND ((type)::text = ANY ((ARRAY['breakage'::character varying, 'cash'::character varying, 'fx'::character varying, 'promotion'::character varying, 'revenue'::character varying, 'slo_expense'::character varying, 'tax_payable'::character varying])::text[])))));
ALTER TABLE billing_ledgeraccount ADD CONSTRAINT ledger_account_once UNIQUE NULLS NOT DISTINCT (tenant_id, type, currency, ref);
ALTER TABLE billing_ledgerseal ADD COLUMN before bytea NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN day date NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN hash bytea NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_ledgerseal ADD COLUMN n bigint NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN sealed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_ledgerseal ADD COLUMN transfers bigint[] NOT NULL;
ALTER TABLE billing_ledgerseal ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_ledgerseal ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_ledgerseal ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_ledgerseal ADD CONSTRAINT seal_once UNIQUE (tenant_id, n);
ALTER TABLE billing_ledgertransfer ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN credit_account_id bigint NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN debit_account_id bigint NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_ledgertransfer ADD COLUMN idem character varying(120) COLLATE "C" NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN kind character varying(20) NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN recorded_at timestamp with time zone NOT NULL DEFAULT clock_timestamp();
ALTER TABLE billing_ledgertransfer ADD COLUMN ref character varying(40) NOT NULL;
ALTER TABLE billing_ledgertransfer ADD COLUMN reverses_id bigint;
ALTER TABLE billing_ledgertransfer ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT transfer_between_two CHECK ((NOT (debit_account_id = credit_account_id)));
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT transfer_named_after_ref CHECK (starts_with((idem)::text, (((ref)::text || ':'::text) COLLATE "C")));
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT transfer_of_something CHECK ((minor > 0));
ALTER TABLE billing_ledgertransfer ADD CONSTRAINT transfer_once UNIQUE (idem);
ALTER TABLE billing_letter ADD COLUMN about character varying(40) NOT NULL;
ALTER TABLE billing_letter ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE billing_letter ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_letter ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_letter ADD COLUMN kind character varying(20) NOT NULL;
ALTER TABLE billing_letter ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_letter ADD COLUMN sent_at timestamp with time zone;
ALTER TABLE billing_letter ADD COLUMN sent_to character varying(254)[] NOT NULL DEFAULT '{}'::character varying(254)[];
ALTER TABLE billing_letter ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_letter ADD COLUMN tries smallint NOT NULL;
ALTER TABLE billing_letter ADD COLUMN trouble character varying(300) NOT NULL;
ALTER TABLE billing_letter ADD COLUMN unsent character varying(10) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_letter ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_letter ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_letter ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_letter ADD CONSTRAINT letter_once UNIQUE (tenant_id, kind, about);
ALTER TABLE billing_minimum ADD COLUMN agreed_at timestamp with time zone NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN agreed_by character varying(254) NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_minimum ADD COLUMN valid tstzrange NOT NULL;
ALTER TABLE billing_minimum ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_minimum ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_minimum ADD CONSTRAINT minimum_lasts_whole_seconds CHECK ((((NOT isempty(valid)) AND isfinite(lower(valid)) AND lower_inc(valid) AND (NOT upper_inc(valid)) AND (date_trunc('second'::text, lower(valid)) = lower(valid)) AND ((upper(valid) IS NULL) OR (isfinite(upper(valid)) AND (date_trunc('second'::text, upper(valid)) = upper(valid))))) IS TRUE));
ALTER TABLE billing_minimum ADD CONSTRAINT minimum_of_something CHECK ((minor > 0));
ALTER TABLE billing_minimum ADD CONSTRAINT minimum_of_what_there_is CHECK (((minor)::double precision <= ((10)::double precision ^ (15)::double precision)));
ALTER TABLE billing_minimum ADD CONSTRAINT one_minimum_at_a_time EXCLUDE USING gist (tenant_id WITH =, valid WITH &&);
ALTER TABLE billing_monthcharge ADD COLUMN base_num numeric(38,0) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN billed_period_id bigint NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN exact_num numeric(38,0) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN kind character varying(9) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN label character varying(200) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN meter character varying(20) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN n integer NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN price_version_id bigint NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN recorded_at timestamp with time zone NOT NULL DEFAULT statement_timestamp();
ALTER TABLE billing_monthcharge ADD COLUMN source character varying(40) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN terms jsonb NOT NULL;
ALTER TABLE billing_monthcharge ADD COLUMN units bigint NOT NULL;
ALTER TABLE billing_monthcharge ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE billing_monthcharge ADD CONSTRAINT (generated) PRIMARY KEY (tenant_id, billed_period_id, kind, source, project_id, offering_id, price_version_id);
ALTER TABLE billing_monthcharge ADD CONSTRAINT month_charge_has_its_sign CHECK ((((exact_num < (0)::numeric) AND ((kind)::text = ANY ((ARRAY['tier'::character varying, 'commit'::character varying, 'percent'::character varying, 'amount'::character varying])::text[]))) OR ((NOT ((kind)::text = ANY ((ARRAY['tier'::character varying, 'commit'::character varying, 'percent'::character varying, 'amount'::character varying])::text[]))) AND (exact_num > (0)::numeric))));
ALTER TABLE billing_monthcharge ADD CONSTRAINT month_charge_kind_known CHECK (((kind)::text = ANY ((ARRAY['tier'::character varying, 'commit'::character varying, 'percent'::character varying, 'amount'::character varying, 'storage'::character varying, 'shortfall'::character varying, 'minimum'::character varying])::text[])));
ALTER TABLE billing_payment ADD COLUMN automatic boolean NOT NULL;
ALTER TABLE billing_payment ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE billing_payment ADD COLUMN code character varying(60) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_payment ADD COLUMN fell integer NOT NULL DEFAULT 0;
ALTER TABLE billing_payment ADD COLUMN gateway character varying(40) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN invoice_id character varying(40) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_payment ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_payment ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN reference character varying(120) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_payment ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN stuck_at timestamp with time zone;
ALTER TABLE billing_payment ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN tries integer NOT NULL;
ALTER TABLE billing_payment ADD COLUMN trouble character varying(200) NOT NULL;
ALTER TABLE billing_payment ADD COLUMN untaken character varying(200) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_payment ADD CONSTRAINT (generated) CHECK ((fell >= 0));
ALTER TABLE billing_payment ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_payment ADD CONSTRAINT (generated) FOREIGN KEY (invoice_id) REFERENCES billing_invoice(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_payment ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_payment ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_payment ADD CONSTRAINT payment_of_something CHECK ((minor > 0));
ALTER TABLE billing_payment ADD CONSTRAINT payment_status_known CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying, 'succeeded'::character varying, 'declined'::character varying])::text[])));
ALTER TABLE billing_payment ADD CONSTRAINT payment_stuck_since CHECK (((((status)::text = 'stuck'::text) AND (stuck_at IS NOT NULL)) OR ((NOT ((status)::text = 'stuck'::text)) AND (stuck_at IS NULL))));
ALTER TABLE billing_payment ADD CONSTRAINT payment_waits_or_is_settled CHECK ((((due_at IS NOT NULL) AND (settled_at IS NULL) AND ((status)::text = 'pending'::text)) OR ((due_at IS NULL) AND (settled_at IS NULL) AND ((status)::text = 'stuck'::text)) OR ((NOT ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying])::text[]))) AND (due_at IS NULL) AND (settled_at IS NOT NULL))));
ALTER TABLE billing_paymentdispute ADD COLUMN id character varying(120) NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN payment_id character varying(40) NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN rank integer NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN reason character varying(80) NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN seen_at timestamp with time zone NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN status character varying(40) NOT NULL;
ALTER TABLE billing_paymentdispute ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_paymentdispute ADD CONSTRAINT (generated) CHECK ((rank >= 0));
ALTER TABLE billing_paymentdispute ADD CONSTRAINT (generated) FOREIGN KEY (payment_id) REFERENCES billing_payment(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_paymentdispute ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_paymentdispute ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_paymentrefund ADD COLUMN id character varying(120) NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN payment_id character varying(40) NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN rank integer NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN seen_at timestamp with time zone NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN status character varying(40) NOT NULL;
ALTER TABLE billing_paymentrefund ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_paymentrefund ADD CONSTRAINT (generated) CHECK ((rank >= 0));
ALTER TABLE billing_paymentrefund ADD CONSTRAINT (generated) FOREIGN KEY (payment_id) REFERENCES billing_payment(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_paymentrefund ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_paymentrefund ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_priceversion ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN created_by character varying(254) NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN free_start_s integer NOT NULL DEFAULT 0;
ALTER TABLE billing_priceversion ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_priceversion ADD COLUMN model character varying(9) NOT NULL DEFAULT 'flat'::character varying;
ALTER TABLE billing_priceversion ADD COLUMN nano_per_hour bigint NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN rate_card_id bigint NOT NULL;
ALTER TABLE billing_priceversion ADD COLUMN tenant_id character varying(40);
ALTER TABLE billing_priceversion ADD COLUMN tier_from_s bigint[];
ALTER TABLE billing_priceversion ADD COLUMN tier_nano bigint[];
ALTER TABLE billing_priceversion ADD COLUMN valid tstzrange NOT NULL;
ALTER TABLE billing_priceversion ADD CONSTRAINT (generated) CHECK ((free_start_s >= 0));
ALTER TABLE billing_priceversion ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_priceversion ADD CONSTRAINT (generated) FOREIGN KEY (rate_card_id) REFERENCES billing_ratecard(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_priceversion ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_priceversion ADD CONSTRAINT one_price_at_a_time EXCLUDE USING gist (rate_card_id WITH =, offering_id WITH =, currency WITH =, valid WITH &&);
ALTER TABLE billing_priceversion ADD CONSTRAINT price_not_negative CHECK ((nano_per_hour >= 0));
ALTER TABLE billing_priceversion ADD CONSTRAINT tiers_tile CHECK ((price_tiles((model)::text, nano_per_hour, tier_from_s, tier_nano) IS TRUE));
ALTER TABLE billing_quote ADD COLUMN cap_minor bigint NOT NULL;
ALTER TABLE billing_quote ADD COLUMN cited_at timestamp with time zone NOT NULL;
ALTER TABLE billing_quote ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_quote ADD COLUMN expires_at timestamp with time zone NOT NULL;
ALTER TABLE billing_quote ADD COLUMN hold_minor bigint NOT NULL;
ALTER TABLE billing_quote ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_quote ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_quote ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_quote ADD COLUMN max_duration_s integer NOT NULL;
ALTER TABLE billing_quote ADD COLUMN nano_per_hour bigint NOT NULL;
ALTER TABLE billing_quote ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_quote ADD COLUMN price_version_id bigint NOT NULL;
ALTER TABLE billing_quote ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_quote ADD COLUMN quantity integer NOT NULL;
ALTER TABLE billing_quote ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_quote ADD CONSTRAINT (generated) CHECK ((max_duration_s >= 0));
ALTER TABLE billing_quote ADD CONSTRAINT (generated) CHECK ((quantity >= 0));
ALTER TABLE billing_quote ADD CONSTRAINT (generated) FOREIGN KEY (lease_id) REFERENCES broker_lease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_quote ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_quote ADD CONSTRAINT (generated) FOREIGN KEY (price_version_id) REFERENCES billing_priceversion(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_quote ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_quote ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_quote ADD CONSTRAINT (generated) UNIQUE (lease_id);
ALTER TABLE billing_quote ADD CONSTRAINT quote_cited_in_time CHECK ((cited_at < expires_at));
ALTER TABLE billing_quote ADD CONSTRAINT quote_not_negative CHECK ((nano_per_hour >= 0));
ALTER TABLE billing_quote ADD CONSTRAINT quote_of_something CHECK ((quantity >= 1));
ALTER TABLE billing_ratecard ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_ratecard ADD COLUMN name character varying(60) NOT NULL;
ALTER TABLE billing_ratecard ADD COLUMN tenant_id character varying(40);
ALTER TABLE billing_ratecard ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_ratecard ADD CONSTRAINT rate_card_once UNIQUE NULLS NOT DISTINCT (tenant_id, name);
ALTER TABLE billing_ratedcharge ADD COLUMN billed_period_id bigint NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN correction_id character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_ratedcharge ADD COLUMN e timestamp with time zone NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN exact_num numeric(38,0) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN kind character varying(8) NOT NULL DEFAULT 'usage'::character varying;
ALTER TABLE billing_ratedcharge ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN meter character varying(20) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN part smallint NOT NULL DEFAULT 0;
ALTER TABLE billing_ratedcharge ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN price_version_id bigint NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN recorded_at timestamp with time zone NOT NULL DEFAULT clock_timestamp();
ALTER TABLE billing_ratedcharge ADD COLUMN run_id bigint NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN s timestamp with time zone NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN seq integer NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_ratedcharge ADD COLUMN unit_seconds bigint NOT NULL;
ALTER TABLE billing_ratedcharge ADD CONSTRAINT (generated) CHECK ((part >= 0));
ALTER TABLE billing_ratedcharge ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE billing_ratedcharge ADD CONSTRAINT (generated) PRIMARY KEY (lease_id, seq, price_version_id, period_id, meter, kind, part, correction_id);
ALTER TABLE billing_ratedcharge ADD CONSTRAINT charge_ends_after_it_began CHECK ((e > s));
ALTER TABLE billing_ratedcharge ADD CONSTRAINT charge_has_seconds CHECK (((((correction_id)::text = ''::text) AND ((kind)::text = 'usage'::text) AND (unit_seconds > 0)) OR (((correction_id)::text = ''::text) AND (exact_num <= (0)::numeric) AND ((kind)::text = 'adjust'::text) AND (unit_seconds < 0)) OR ((((exact_num <= (0)::numeric) AND (unit_seconds < 0)) OR ((exact_num >= (0)::numeric) AND (unit_seconds > 0))) AND (NOT ((correction_id)::text = ''::text)) AND ((kind)::text = 'adjust'::text))));
ALTER TABLE billing_ratingmark ADD COLUMN storage_xid bigint;
ALTER TABLE billing_ratingmark ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_ratingmark ADD COLUMN xid bigint NOT NULL;
ALTER TABLE billing_ratingmark ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_ratingmark ADD CONSTRAINT (generated) PRIMARY KEY (tenant_id);
ALTER TABLE billing_refund ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE billing_refund ADD COLUMN code character varying(60) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_refund ADD COLUMN fell integer NOT NULL DEFAULT 0;
ALTER TABLE billing_refund ADD COLUMN gateway character varying(40) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_refund ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_refund ADD COLUMN opened_by character varying(40) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN payment_id character varying(40) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN reference character varying(120) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN returned_at timestamp with time zone;
ALTER TABLE billing_refund ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_refund ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN stuck_at timestamp with time zone;
ALTER TABLE billing_refund ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN tries integer NOT NULL;
ALTER TABLE billing_refund ADD COLUMN trouble character varying(200) NOT NULL;
ALTER TABLE billing_refund ADD COLUMN untaken character varying(200) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_refund ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE billing_refund ADD CONSTRAINT (generated) CHECK ((fell >= 0));
ALTER TABLE billing_refund ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_refund ADD CONSTRAINT (generated) FOREIGN KEY (payment_id) REFERENCES billing_payment(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_refund ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_refund ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_refund ADD CONSTRAINT refund_of_something CHECK ((minor > 0));
ALTER TABLE billing_refund ADD CONSTRAINT refund_returned_after_success CHECK (((returned_at IS NULL) OR ((status)::text = 'succeeded'::text)));
ALTER TABLE billing_refund ADD CONSTRAINT refund_status_known CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying, 'succeeded'::character varying, 'declined'::character varying])::text[])));
ALTER TABLE billing_refund ADD CONSTRAINT refund_waits_or_is_settled CHECK ((((due_at IS NOT NULL) AND (settled_at IS NULL) AND ((status)::text = 'pending'::text)) OR ((due_at IS NULL) AND (settled_at IS NULL) AND ((status)::text = 'stuck'::text)) OR ((NOT ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying])::text[]))) AND (due_at IS NULL) AND (settled_at IS NOT NULL))));
ALTER TABLE billing_simulatedcharge ADD COLUMN answers_at timestamp with time zone NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN declined boolean NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN key character varying(60) NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN payer character varying(60) NOT NULL;
ALTER TABLE billing_simulatedcharge ADD COLUMN text character varying(200) NOT NULL;
ALTER TABLE billing_simulatedcharge ADD CONSTRAINT (generated) PRIMARY KEY (key);
ALTER TABLE billing_simulatedpayer ADD COLUMN ills jsonb NOT NULL;
ALTER TABLE billing_simulatedpayer ADD COLUMN payer character varying(60) NOT NULL;
ALTER TABLE billing_simulatedpayer ADD CONSTRAINT (generated) PRIMARY KEY (payer);
ALTER TABLE billing_simulatedrefund ADD COLUMN charge_id character varying(60) NOT NULL;
ALTER TABLE billing_simulatedrefund ADD COLUMN key character varying(60) NOT NULL;
ALTER TABLE billing_simulatedrefund ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_simulatedrefund ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_simulatedrefund ADD CONSTRAINT (generated) FOREIGN KEY (charge_id) REFERENCES billing_simulatedcharge(key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_simulatedrefund ADD CONSTRAINT (generated) PRIMARY KEY (key);
ALTER TABLE billing_stripecharge ADD COLUMN card character varying(60) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN card_id character varying(120) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN code character varying(60) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN customer_id character varying(120) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN id character varying(60) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN outcome character varying(9) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN round integer NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN sent_minor bigint NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_stripecharge ADD COLUMN stripe_id character varying(120) NOT NULL;
ALTER TABLE billing_stripecharge ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_stripecharge ADD CONSTRAINT (generated) CHECK ((round >= 0));
ALTER TABLE billing_stripecharge ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_stripecharge ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripecharge ADD CONSTRAINT stripe_charge_open_or_settled CHECK (((((outcome)::text = 'open'::text) AND (settled_at IS NULL)) OR ((NOT ((outcome)::text = 'open'::text)) AND (NOT (settled_at IS NULL)))));
ALTER TABLE billing_stripecharge ADD CONSTRAINT stripe_outcome_known CHECK (((outcome)::text = ANY ((ARRAY['open'::character varying, 'succeeded'::character varying, 'declined'::character varying])::text[])));
ALTER TABLE billing_stripecommand ADD COLUMN answer text NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN attempt integer NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripecommand ADD COLUMN idem character varying(64) NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN params text NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN round integer NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN sent integer NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN sent_at timestamp with time zone;
ALTER TABLE billing_stripecommand ADD COLUMN state character varying(7) NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN step character varying(20) NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN subject character varying(60) NOT NULL;
ALTER TABLE billing_stripecommand ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) CHECK ((attempt >= 0));
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) CHECK ((round >= 0));
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) CHECK ((sent >= 0));
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripecommand ADD CONSTRAINT (generated) UNIQUE (idem);
ALTER TABLE billing_stripecommand ADD CONSTRAINT stripe_command_once UNIQUE (tenant_id, subject, step, round);
ALTER TABLE billing_stripecommand ADD CONSTRAINT stripe_command_state_known CHECK (((state)::text = ANY ((ARRAY['new'::character varying, 'unclear'::character varying, 'done'::character varying])::text[])));
ALTER TABLE billing_stripecustomer ADD COLUMN added_at timestamp with time zone;
ALTER TABLE billing_stripecustomer ADD COLUMN added_by character varying(200) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN brand character varying(30) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN card_id character varying(120) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN customer_id character varying(120) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN ends character varying(7) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripecustomer ADD COLUMN last4 character varying(4) NOT NULL;
ALTER TABLE billing_stripecustomer ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_stripecustomer ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_stripecustomer ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripecustomer ADD CONSTRAINT stripe_customer_once UNIQUE (tenant_id);
ALTER TABLE billing_stripeday ADD COLUMN after character varying(120) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_stripeday ADD COLUMN begun_at timestamp with time zone;
ALTER TABLE billing_stripeday ADD COLUMN charges integer NOT NULL;
ALTER TABLE billing_stripeday ADD COLUMN checked_at timestamp with time zone;
ALTER TABLE billing_stripeday ADD COLUMN day date NOT NULL;
ALTER TABLE billing_stripeday ADD COLUMN differences integer NOT NULL;
ALTER TABLE billing_stripeday ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_stripeday ADD COLUMN events integer NOT NULL;
ALTER TABLE billing_stripeday ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripeday ADD COLUMN invoices integer NOT NULL;
ALTER TABLE billing_stripeday ADD COLUMN phase character varying(6) NOT NULL DEFAULT 'events'::character varying;
ALTER TABLE billing_stripeday ADD COLUMN trouble character varying(200) NOT NULL;
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) CHECK ((charges >= 0));
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) CHECK ((differences >= 0));
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) CHECK ((events >= 0));
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) CHECK ((invoices >= 0));
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripeday ADD CONSTRAINT (generated) UNIQUE (day);
ALTER TABLE billing_stripedifference ADD COLUMN acknowledged_at timestamp with time zone;
ALTER TABLE billing_stripedifference ADD COLUMN acknowledged_by character varying(200) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_stripedifference ADD COLUMN back bigint;
ALTER TABLE billing_stripedifference ADD COLUMN booked bigint;
ALTER TABLE billing_stripedifference ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN day_id bigint NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN found_at timestamp with time zone NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripedifference ADD COLUMN kind character varying(30) NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN ours bigint;
ALTER TABLE billing_stripedifference ADD COLUMN ref character varying(120) NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN seen_at timestamp with time zone NOT NULL;
ALTER TABLE billing_stripedifference ADD COLUMN theirs bigint;
ALTER TABLE billing_stripedifference ADD COLUMN why character varying(200) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_stripedifference ADD CONSTRAINT (generated) FOREIGN KEY (day_id) REFERENCES billing_stripeday(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_stripedifference ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripedifference ADD CONSTRAINT stripe_difference_once UNIQUE (day_id, kind, ref);
ALTER TABLE billing_stripeevent ADD COLUMN api_version character varying(40) NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN created timestamp with time zone NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_stripeevent ADD COLUMN found boolean NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN id character varying(120) NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN object_id character varying(120) NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN received_at timestamp with time zone NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN silences integer NOT NULL DEFAULT 0;
ALTER TABLE billing_stripeevent ADD COLUMN state character varying(7) NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN tries integer NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN type character varying(80) NOT NULL;
ALTER TABLE billing_stripeevent ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE billing_stripeevent ADD CONSTRAINT (generated) CHECK ((silences >= 0));
ALTER TABLE billing_stripeevent ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_stripeevent ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripeevent ADD CONSTRAINT stripe_event_waits_or_not CHECK ((((due_at IS NOT NULL) AND ((state)::text = 'waiting'::text)) OR ((NOT ((state)::text = 'waiting'::text)) AND (due_at IS NULL))));
ALTER TABLE billing_stripepace ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripepace ADD COLUMN idle_at timestamp with time zone NOT NULL;
ALTER TABLE billing_stripepace ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripeseen ADD COLUMN charge character varying(60) NOT NULL;
ALTER TABLE billing_stripeseen ADD COLUMN day_id bigint NOT NULL;
ALTER TABLE billing_stripeseen ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_stripeseen ADD CONSTRAINT (generated) FOREIGN KEY (day_id) REFERENCES billing_stripeday(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_stripeseen ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_stripeseen ADD CONSTRAINT stripe_seen_once UNIQUE (day_id, charge);
ALTER TABLE billing_taxedas ADD COLUMN category character varying(10) NOT NULL;
ALTER TABLE billing_taxedas ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE billing_taxedas ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_taxedas ADD CONSTRAINT (generated) PRIMARY KEY (offering_id);
ALTER TABLE billing_taxedas ADD CONSTRAINT taxed_as_known CHECK (((category)::text = ANY ((ARRAY['standard'::character varying, 'reduced'::character varying, 'exempt'::character varying])::text[])));
ALTER TABLE billing_taxrate ADD COLUMN category character varying(10) NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN created_by character varying(254) NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN jurisdiction character varying(2) NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN rate_bp integer NOT NULL;
ALTER TABLE billing_taxrate ADD COLUMN used boolean NOT NULL DEFAULT false;
ALTER TABLE billing_taxrate ADD COLUMN valid daterange NOT NULL;
ALTER TABLE billing_taxrate ADD CONSTRAINT (generated) CHECK ((rate_bp >= 0));
ALTER TABLE billing_taxrate ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_taxrate ADD CONSTRAINT one_tax_rate_at_a_time EXCLUDE USING gist (jurisdiction WITH =, category WITH =, valid WITH &&);
ALTER TABLE billing_taxrate ADD CONSTRAINT tax_category_known CHECK (((category)::text = ANY ((ARRAY['standard'::character varying, 'reduced'::character varying, 'exempt'::character varying])::text[])));
ALTER TABLE billing_taxrate ADD CONSTRAINT tax_takes_no_more_than_all CHECK ((rate_bp <= 10000));
ALTER TABLE billing_tenantterms ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_tenantterms ADD COLUMN payment character varying(8) NOT NULL;
ALTER TABLE billing_tenantterms ADD COLUMN since timestamp with time zone NOT NULL;
ALTER TABLE billing_tenantterms ADD COLUMN standing character varying(9) NOT NULL;
ALTER TABLE billing_tenantterms ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_tenantterms ADD COLUMN version integer NOT NULL;
ALTER TABLE billing_tenantterms ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE billing_tenantterms ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE billing_tenantterms ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tenantterms ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_tenantterms ADD CONSTRAINT terms_once_a_tenant UNIQUE (tenant_id);
ALTER TABLE billing_tenantterms ADD CONSTRAINT terms_payment_known CHECK (((payment)::text = ANY ((ARRAY['invoice'::character varying, 'prepaid'::character varying])::text[])));
ALTER TABLE billing_tenantterms ADD CONSTRAINT terms_standing_known CHECK (((standing)::text = ANY ((ARRAY['good'::character varying, 'grace'::character varying, 'suspended'::character varying])::text[])));
ALTER TABLE billing_tokencap ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_tokencap ADD COLUMN daily_minor bigint;
ALTER TABLE billing_tokencap ADD COLUMN offerings character varying(40)[] NOT NULL;
ALTER TABLE billing_tokencap ADD COLUMN set_at timestamp with time zone NOT NULL;
ALTER TABLE billing_tokencap ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_tokencap ADD COLUMN token_id character varying(40) NOT NULL;
ALTER TABLE billing_tokencap ADD COLUMN total_minor bigint;
ALTER TABLE billing_tokencap ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokencap ADD CONSTRAINT (generated) FOREIGN KEY (token_id) REFERENCES tenants_apitoken(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokencap ADD CONSTRAINT (generated) PRIMARY KEY (token_id);
ALTER TABLE billing_tokencap ADD CONSTRAINT token_cap_not_negative CHECK ((((daily_minor IS NULL) OR (daily_minor >= 0)) AND ((total_minor IS NULL) OR (total_minor >= 0))));
ALTER TABLE billing_tokenday ADD COLUMN cap_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenday ADD COLUMN day date NOT NULL;
ALTER TABLE billing_tokenday ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_tokenday ADD COLUMN taken_num numeric(38,0) NOT NULL;
ALTER TABLE billing_tokenday ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenday ADD CONSTRAINT (generated) FOREIGN KEY (cap_id) REFERENCES billing_tokencap(token_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenday ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenday ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_tokenday ADD CONSTRAINT token_day_not_negative CHECK ((taken_num >= (0)::numeric));
ALTER TABLE billing_tokenday ADD CONSTRAINT token_day_once UNIQUE (tenant_id, cap_id, day);
ALTER TABLE billing_tokenlease ADD COLUMN cap_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenlease ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_tokenlease ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenlease ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenlease ADD CONSTRAINT (generated) FOREIGN KEY (cap_id) REFERENCES billing_tokencap(token_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenlease ADD CONSTRAINT (generated) FOREIGN KEY (lease_id) REFERENCES broker_lease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenlease ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenlease ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_tokenlease ADD CONSTRAINT (generated) UNIQUE (lease_id);
ALTER TABLE billing_tokenpart ADD COLUMN day_id bigint NOT NULL;
ALTER TABLE billing_tokenpart ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_tokenpart ADD COLUMN num numeric(38,0) NOT NULL;
ALTER TABLE billing_tokenpart ADD COLUMN of_id bigint NOT NULL;
ALTER TABLE billing_tokenpart ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_tokenpart ADD CONSTRAINT (generated) FOREIGN KEY (day_id) REFERENCES billing_tokenday(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenpart ADD CONSTRAINT (generated) FOREIGN KEY (of_id) REFERENCES billing_tokenlease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenpart ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_tokenpart ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_tokenpart ADD CONSTRAINT token_part_not_negative CHECK ((num >= (0)::numeric));
ALTER TABLE billing_tokenpart ADD CONSTRAINT token_part_once UNIQUE (tenant_id, of_id, day_id);
ALTER TABLE billing_topup ADD COLUMN "window" bigint;
ALTER TABLE billing_topup ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE billing_topup ADD COLUMN code character varying(60) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN due_at timestamp with time zone;
ALTER TABLE billing_topup ADD COLUMN fell integer NOT NULL DEFAULT 0;
ALTER TABLE billing_topup ADD COLUMN gateway character varying(40) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN minor bigint NOT NULL;
ALTER TABLE billing_topup ADD COLUMN opened_at timestamp with time zone NOT NULL;
ALTER TABLE billing_topup ADD COLUMN opened_by character varying(40) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN reference character varying(120) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN settled_at timestamp with time zone;
ALTER TABLE billing_topup ADD COLUMN status character varying(9) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN stuck_at timestamp with time zone;
ALTER TABLE billing_topup ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN tries integer NOT NULL;
ALTER TABLE billing_topup ADD COLUMN trouble character varying(200) NOT NULL;
ALTER TABLE billing_topup ADD COLUMN untaken character varying(200) NOT NULL DEFAULT ''::character varying;
ALTER TABLE billing_topup ADD CONSTRAINT (generated) CHECK ((fell >= 0));
ALTER TABLE billing_topup ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE billing_topup ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_topup ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_topup ADD CONSTRAINT one_topup_a_window UNIQUE (tenant_id, "window");
ALTER TABLE billing_topup ADD CONSTRAINT topup_of_something CHECK ((minor > 0));
ALTER TABLE billing_topup ADD CONSTRAINT topup_status_known CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying, 'succeeded'::character varying, 'declined'::character varying])::text[])));
ALTER TABLE billing_topup ADD CONSTRAINT topup_waits_or_is_settled CHECK ((((due_at IS NOT NULL) AND (settled_at IS NULL) AND ((status)::text = 'pending'::text)) OR ((due_at IS NULL) AND (settled_at IS NULL) AND ((status)::text = 'stuck'::text)) OR ((NOT ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying])::text[]))) AND (due_at IS NULL) AND (settled_at IS NOT NULL))));
ALTER TABLE billing_wallet ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE billing_wallet ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_wallet ADD COLUMN taken_num numeric(38,0) NOT NULL;
ALTER TABLE billing_wallet ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_wallet ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_wallet ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_wallet ADD CONSTRAINT wallet_adds_up CHECK ((taken_num >= (0)::numeric));
ALTER TABLE billing_wallet ADD CONSTRAINT wallet_once_a_tenant UNIQUE (tenant_id);
ALTER TABLE billing_walletpart ADD COLUMN hold_id character varying(40);
ALTER TABLE billing_walletpart ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE billing_walletpart ADD COLUMN num numeric(38,0) NOT NULL;
ALTER TABLE billing_walletpart ADD COLUMN period_id bigint NOT NULL;
ALTER TABLE billing_walletpart ADD COLUMN spent_num numeric(38,0) NOT NULL;
ALTER TABLE billing_walletpart ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE billing_walletpart ADD COLUMN wallet_id bigint NOT NULL;
ALTER TABLE billing_walletpart ADD CONSTRAINT (generated) FOREIGN KEY (hold_id) REFERENCES billing_hold(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_walletpart ADD CONSTRAINT (generated) FOREIGN KEY (period_id) REFERENCES billing_billingperiod(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_walletpart ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_walletpart ADD CONSTRAINT (generated) FOREIGN KEY (wallet_id) REFERENCES billing_wallet(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_walletpart ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE billing_walletpart ADD CONSTRAINT wallet_part_covers CHECK (((num >= spent_num) AND (spent_num >= (0)::numeric)));
ALTER TABLE billing_walletpart ADD CONSTRAINT wallet_part_once UNIQUE NULLS NOT DISTINCT (tenant_id, hold_id, period_id);
ALTER TABLE broker_allocation ADD COLUMN for_move boolean NOT NULL DEFAULT false;
ALTER TABLE broker_allocation ADD COLUMN generation integer NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN gpu_id character varying(40) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN held_at timestamp with time zone NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN isolation character varying(10) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN leaving_since timestamp with time zone;
ALTER TABLE broker_allocation ADD COLUMN may_share boolean NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN placement int4range NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN profile character varying(30) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN released_at timestamp with time zone;
ALTER TABLE broker_allocation ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_allocation ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_allocation ADD CONSTRAINT (generated) CHECK ((generation >= 0));
ALTER TABLE broker_allocation ADD CONSTRAINT (generated) FOREIGN KEY (gpu_id) REFERENCES broker_gpu(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_allocation ADD CONSTRAINT (generated) FOREIGN KEY (lease_id) REFERENCES broker_lease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_allocation ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_allocation ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_allocation ADD CONSTRAINT no_strangers_on_a_soft_card EXCLUDE USING gist (gpu_id WITH =, tenant_id WITH <>) WHERE (((released_at IS NULL) AND ((isolation)::text = ANY ((ARRAY['soft'::character varying, 'none'::character varying])::text[])) AND (NOT may_share)));
ALTER TABLE broker_allocation ADD CONSTRAINT one_isolation_per_card EXCLUDE USING gist (gpu_id WITH =, isolation WITH <>) WHERE ((released_at IS NULL));
ALTER TABLE broker_allocation ADD CONSTRAINT one_lease_per_place EXCLUDE USING gist (gpu_id WITH =, placement WITH &&) WHERE ((released_at IS NULL));
ALTER TABLE broker_cluster ADD COLUMN address character varying(300) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN bastion character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN believes boolean NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN domain character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN door character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN driver character varying(20) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN driver_options jsonb NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN entrances character varying(300) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_cluster ADD COLUMN frozen character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN halted character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN name character varying(60) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN provisioner character varying(20) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN recuts boolean NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN region character varying(60) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN shares_soft_cards boolean NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN silent_since timestamp with time zone;
ALTER TABLE broker_cluster ADD COLUMN silent_why character varying(200) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN uid character varying(40) NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_cluster ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_cluster ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_cluster ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_cluster ADD CONSTRAINT (generated) UNIQUE (name);
ALTER TABLE broker_clustercredential ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_clustercredential ADD COLUMN sealed bytea NOT NULL;
ALTER TABLE broker_clustercredential ADD COLUMN updated_at timestamp with time zone NOT NULL;
ALTER TABLE broker_clustercredential ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_clustercredential ADD CONSTRAINT (generated) PRIMARY KEY (cluster_id);
ALTER TABLE broker_clusterobject ADD COLUMN body jsonb NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_clusterobject ADD COLUMN kind character varying(60) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN name character varying(253) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN namespace character varying(63) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN order_name character varying(63) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN seen_at timestamp with time zone NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN uid character varying(40) NOT NULL;
ALTER TABLE broker_clusterobject ADD COLUMN version bigint NOT NULL;
ALTER TABLE broker_clusterobject ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_clusterobject ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_clusterobject ADD CONSTRAINT object_once_per_cluster UNIQUE (cluster_id, kind, namespace, name);
ALTER TABLE broker_clusterwatch ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_clusterwatch ADD COLUMN heard_at timestamp with time zone NOT NULL;
ALTER TABLE broker_clusterwatch ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_clusterwatch ADD COLUMN kind character varying(60) NOT NULL;
ALTER TABLE broker_clusterwatch ADD COLUMN synced_at timestamp with time zone NOT NULL;
ALTER TABLE broker_clusterwatch ADD COLUMN version bigint NOT NULL;
ALTER TABLE broker_clusterwatch ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_clusterwatch ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_clusterwatch ADD CONSTRAINT watch_once_per_cluster UNIQUE (cluster_id, kind);
ALTER TABLE broker_examination ADD COLUMN asked_at timestamp with time zone NOT NULL;
ALTER TABLE broker_examination ADD COLUMN asked_by character varying(254) NOT NULL;
ALTER TABLE broker_examination ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_examination ADD COLUMN done_at timestamp with time zone;
ALTER TABLE broker_examination ADD COLUMN findings jsonb NOT NULL;
ALTER TABLE broker_examination ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_examination ADD CONSTRAINT (generated) PRIMARY KEY (cluster_id);
ALTER TABLE broker_gpu ADD COLUMN closed_since timestamp with time zone;
ALTER TABLE broker_gpu ADD COLUMN fabric character varying(64) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_gpu ADD COLUMN fixed_layout jsonb NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN gpu_model_id character varying(60) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN health character varying(10) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN health_reason character varying(200) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN health_since timestamp with time zone NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN index smallint NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN layout_policy character varying(8) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN node_id character varying(40) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN numa character varying(64) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_gpu ADD COLUMN published jsonb;
ALTER TABLE broker_gpu ADD COLUMN uuid character varying(300) NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_gpu ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) CHECK ((index >= 0));
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) FOREIGN KEY (gpu_model_id) REFERENCES broker_gpumodel(name) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) FOREIGN KEY (node_id) REFERENCES broker_node(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_gpu ADD CONSTRAINT (generated) UNIQUE (uuid);
ALTER TABLE broker_gpu ADD CONSTRAINT gpu_health_known CHECK (((health)::text = ANY ((ARRAY['healthy'::character varying, 'unhealthy'::character varying])::text[])));
ALTER TABLE broker_gpu ADD CONSTRAINT gpu_once_per_node UNIQUE (node_id, index);
ALTER TABLE broker_gpumodel ADD COLUMN compute_slices smallint NOT NULL;
ALTER TABLE broker_gpumodel ADD COLUMN memory_gb integer NOT NULL;
ALTER TABLE broker_gpumodel ADD COLUMN memory_grid smallint NOT NULL;
ALTER TABLE broker_gpumodel ADD COLUMN name character varying(60) NOT NULL;
ALTER TABLE broker_gpumodel ADD COLUMN spec jsonb NOT NULL;
ALTER TABLE broker_gpumodel ADD CONSTRAINT (generated) CHECK ((compute_slices >= 0));
ALTER TABLE broker_gpumodel ADD CONSTRAINT (generated) CHECK ((memory_gb >= 0));
ALTER TABLE broker_gpumodel ADD CONSTRAINT (generated) CHECK ((memory_grid >= 0));
ALTER TABLE broker_gpumodel ADD CONSTRAINT (generated) PRIMARY KEY (name);
ALTER TABLE broker_installation ADD COLUMN id smallint NOT NULL;
ALTER TABLE broker_installation ADD COLUMN mark character varying(40) NOT NULL;
ALTER TABLE broker_installation ADD CONSTRAINT (generated) CHECK ((id >= 0));
ALTER TABLE broker_installation ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_installation ADD CONSTRAINT installation_once CHECK ((id = 1));
ALTER TABLE broker_inventorychange ADD COLUMN actor_label character varying(254) NOT NULL;
ALTER TABLE broker_inventorychange ADD COLUMN after character varying(10) NOT NULL;
ALTER TABLE broker_inventorychange ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_inventorychange ADD COLUMN before character varying(10) NOT NULL;
ALTER TABLE broker_inventorychange ADD COLUMN gpu_id character varying(40);
ALTER TABLE broker_inventorychange ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_inventorychange ADD COLUMN node_id character varying(40) NOT NULL;
ALTER TABLE broker_inventorychange ADD COLUMN reason character varying(200) NOT NULL;
ALTER TABLE broker_inventorychange ADD CONSTRAINT (generated) FOREIGN KEY (gpu_id) REFERENCES broker_gpu(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_inventorychange ADD CONSTRAINT (generated) FOREIGN KEY (node_id) REFERENCES broker_node(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_inventorychange ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_layoutchange ADD COLUMN attempts smallint NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN before jsonb NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE broker_layoutchange ADD COLUMN due_at timestamp with time zone;
ALTER TABLE broker_layoutchange ADD COLUMN gain_milli integer NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN node_id character varying(40) NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN planned_at timestamp with time zone NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN step character varying(12) NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN step_at timestamp with time zone NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN tries integer NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN wanted jsonb NOT NULL;
ALTER TABLE broker_layoutchange ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE broker_layoutchange ADD CONSTRAINT (generated) CHECK ((attempts >= 0));
ALTER TABLE broker_layoutchange ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_layoutchange ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE broker_layoutchange ADD CONSTRAINT (generated) FOREIGN KEY (node_id) REFERENCES broker_node(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_layoutchange ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_layoutchange ADD CONSTRAINT layout_change_step_known CHECK (((step)::text = ANY ((ARRAY['planned'::character varying, 'closing'::character varying, 'draining'::character varying, 'labelling'::character varying, 'cutting'::character varying, 'nudging'::character varying, 'opening'::character varying, 'done'::character varying, 'quarantined'::character varying, 'cancelling'::character varying, 'cancelled'::character varying])::text[])));
ALTER TABLE broker_layoutstep ADD COLUMN actor_label character varying(254) NOT NULL;
ALTER TABLE broker_layoutstep ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_layoutstep ADD COLUMN change_id character varying(40) NOT NULL;
ALTER TABLE broker_layoutstep ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_layoutstep ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_layoutstep ADD COLUMN step character varying(12) NOT NULL;
ALTER TABLE broker_layoutstep ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE broker_layoutstep ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_layoutstep ADD CONSTRAINT (generated) FOREIGN KEY (change_id) REFERENCES broker_layoutchange(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_layoutstep ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_layoutstep ADD CONSTRAINT layout_step_once UNIQUE (change_id, seq);
ALTER TABLE broker_lease ADD COLUMN active_at timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_lease ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN command character varying(2000) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN conditions jsonb NOT NULL;
ALTER TABLE broker_lease ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE broker_lease ADD COLUMN due_at timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN end_date timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN end_reason character varying(20) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN ended_at timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN ends_at timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN env jsonb NOT NULL DEFAULT '{}'::jsonb;
ALTER TABLE broker_lease ADD COLUMN generation integer NOT NULL;
ALTER TABLE broker_lease ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN ill_since timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN image character varying(300) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN max_duration_s integer NOT NULL;
ALTER TABLE broker_lease ADD COLUMN movable boolean NOT NULL DEFAULT false;
ALTER TABLE broker_lease ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN progress jsonb NOT NULL;
ALTER TABLE broker_lease ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN quantity integer NOT NULL;
ALTER TABLE broker_lease ADD COLUMN quota_uses jsonb NOT NULL;
ALTER TABLE broker_lease ADD COLUMN quote_id character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_lease ADD COLUMN requested_by character varying(40) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN requested_by_label character varying(254) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN same_node boolean NOT NULL;
ALTER TABLE broker_lease ADD COLUMN seen_at timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_lease ADD COLUMN spent_s integer NOT NULL DEFAULT 0;
ALTER TABLE broker_lease ADD COLUMN ssh_keys jsonb NOT NULL DEFAULT '[]'::jsonb;
ALTER TABLE broker_lease ADD COLUMN state character varying(12) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN tags jsonb NOT NULL;
ALTER TABLE broker_lease ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN topology character varying(10) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_lease ADD COLUMN tries smallint NOT NULL;
ALTER TABLE broker_lease ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_lease ADD COLUMN volume_id character varying(40);
ALTER TABLE broker_lease ADD COLUMN waits_for character varying(300) NOT NULL;
ALTER TABLE broker_lease ADD COLUMN waits_since timestamp with time zone;
ALTER TABLE broker_lease ADD COLUMN workload character varying(20) NOT NULL DEFAULT ''::character varying;
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((generation >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((max_duration_s >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((quantity >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((spent_s >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((tries >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_lease ADD CONSTRAINT (generated) FOREIGN KEY (offering_id) REFERENCES broker_offering(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_lease ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_lease ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_lease ADD CONSTRAINT (generated) FOREIGN KEY (volume_id) REFERENCES broker_volume(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_lease ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_lease ADD CONSTRAINT lease_state_known CHECK (((state)::text = ANY ((ARRAY['requested'::character varying, 'queued'::character varying, 'provisioning'::character varying, 'active'::character varying, 'stopping'::character varying, 'stopped'::character varying, 'releasing'::character varying, 'released'::character varying, 'failed'::character varying])::text[])));
ALTER TABLE broker_lease ADD CONSTRAINT lease_wants_something CHECK ((quantity >= 1));
ALTER TABLE broker_move ADD COLUMN cost_s integer NOT NULL;
ALTER TABLE broker_move ADD COLUMN from_gpu_id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN from_start smallint NOT NULL;
ALTER TABLE broker_move ADD COLUMN gain_milli integer NOT NULL;
ALTER TABLE broker_move ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN n integer NOT NULL;
ALTER TABLE broker_move ADD COLUMN not_before timestamp with time zone;
ALTER TABLE broker_move ADD COLUMN plan_id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN profile character varying(30) NOT NULL;
ALTER TABLE broker_move ADD COLUMN size smallint NOT NULL;
ALTER TABLE broker_move ADD COLUMN state character varying(12) NOT NULL;
ALTER TABLE broker_move ADD COLUMN state_at timestamp with time zone NOT NULL;
ALTER TABLE broker_move ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN to_gpu_id character varying(40) NOT NULL;
ALTER TABLE broker_move ADD COLUMN to_start smallint NOT NULL;
ALTER TABLE broker_move ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE broker_move ADD CONSTRAINT (generated) CHECK ((cost_s >= 0));
ALTER TABLE broker_move ADD CONSTRAINT (generated) CHECK ((from_start >= 0));
ALTER TABLE broker_move ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE broker_move ADD CONSTRAINT (generated) CHECK ((size >= 0));
ALTER TABLE broker_move ADD CONSTRAINT (generated) CHECK ((to_start >= 0));
ALTER TABLE broker_move ADD CONSTRAINT (generated) FOREIGN KEY (from_gpu_id) REFERENCES broker_gpu(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_move ADD CONSTRAINT (generated) FOREIGN KEY (lease_id) REFERENCES broker_lease(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_move ADD CONSTRAINT (generated) FOREIGN KEY (plan_id) REFERENCES broker_moveplan(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_move ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_move ADD CONSTRAINT (generated) FOREIGN KEY (to_gpu_id) REFERENCES broker_gpu(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_move ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_move ADD CONSTRAINT move_has_its_turn UNIQUE (tenant_id, plan_id, n);
ALTER TABLE broker_move ADD CONSTRAINT move_state_known CHECK (((state)::text = ANY ((ARRAY['planned'::character varying, 'noticed'::character varying, 'moving'::character varying, 'returning'::character varying, 'done'::character varying, 'undone'::character varying, 'failed'::character varying])::text[])));
ALTER TABLE broker_moveentry ADD COLUMN actor_label character varying(254) NOT NULL;
ALTER TABLE broker_moveentry ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_moveentry ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_moveentry ADD COLUMN n integer;
ALTER TABLE broker_moveentry ADD COLUMN plan_id character varying(40) NOT NULL;
ALTER TABLE broker_moveentry ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_moveentry ADD COLUMN state character varying(12) NOT NULL;
ALTER TABLE broker_moveentry ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE broker_moveentry ADD CONSTRAINT (generated) CHECK ((n >= 0));
ALTER TABLE broker_moveentry ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_moveentry ADD CONSTRAINT (generated) FOREIGN KEY (plan_id) REFERENCES broker_moveplan(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_moveentry ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_moveentry ADD CONSTRAINT move_entry_once UNIQUE (plan_id, seq);
ALTER TABLE broker_moveplan ADD COLUMN cards jsonb NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE broker_moveplan ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN cost_s integer NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN due_at timestamp with time zone;
ALTER TABLE broker_moveplan ADD COLUMN gain_milli integer NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN gpu_model_id character varying(60) NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN not_before timestamp with time zone;
ALTER TABLE broker_moveplan ADD COLUMN proposed_at timestamp with time zone NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN reason character varying(300) NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN state character varying(12) NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN state_at timestamp with time zone NOT NULL;
ALTER TABLE broker_moveplan ADD COLUMN why character varying(200) NOT NULL;
ALTER TABLE broker_moveplan ADD CONSTRAINT (generated) CHECK ((cost_s >= 0));
ALTER TABLE broker_moveplan ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_moveplan ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_moveplan ADD CONSTRAINT (generated) FOREIGN KEY (gpu_model_id) REFERENCES broker_gpumodel(name) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_moveplan ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_moveplan ADD CONSTRAINT move_plan_state_known CHECK (((state)::text = ANY ((ARRAY['proposed'::character varying, 'accepted'::character varying, 'running'::character varying, 'cancelling'::character varying, 'done'::character varying, 'cancelled'::character varying, 'failed'::character varying, 'declined'::character varying])::text[])));
ALTER TABLE broker_node ADD COLUMN cluster_id character varying(40) NOT NULL;
ALTER TABLE broker_node ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_node ADD COLUMN name character varying(253) NOT NULL;
ALTER TABLE broker_node ADD COLUMN state character varying(10) NOT NULL;
ALTER TABLE broker_node ADD COLUMN state_since timestamp with time zone NOT NULL;
ALTER TABLE broker_node ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_node ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_node ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_node ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_node ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_node ADD CONSTRAINT node_once_per_cluster UNIQUE (cluster_id, name);
ALTER TABLE broker_node ADD CONSTRAINT node_state_known CHECK (((state)::text = ANY ((ARRAY['ready'::character varying, 'cordoned'::character varying, 'draining'::character varying, 'lost'::character varying])::text[])));
ALTER TABLE broker_offering ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE broker_offering ADD COLUMN gpu_model_id character varying(60);
ALTER TABLE broker_offering ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN isolation character varying(10) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN label character varying(120) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN memory_gb integer NOT NULL;
ALTER TABLE broker_offering ADD COLUMN milli_units integer NOT NULL;
ALTER TABLE broker_offering ADD COLUMN price_class character varying(10) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN profile character varying(30) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN region character varying(60) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN state character varying(10) NOT NULL;
ALTER TABLE broker_offering ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_offering ADD CONSTRAINT (generated) CHECK ((memory_gb >= 0));
ALTER TABLE broker_offering ADD CONSTRAINT (generated) CHECK ((milli_units >= 0));
ALTER TABLE broker_offering ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_offering ADD CONSTRAINT (generated) FOREIGN KEY (gpu_model_id) REFERENCES broker_gpumodel(name) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_offering ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_offering ADD CONSTRAINT offering_class_known CHECK (((price_class)::text = ANY ((ARRAY['on_demand'::character varying, 'spot'::character varying, 'reserved'::character varying])::text[])));
ALTER TABLE broker_offering ADD CONSTRAINT offering_isolation_known CHECK (((isolation)::text = ANY ((ARRAY['device'::character varying, 'hardware'::character varying, 'soft'::character varying, 'none'::character varying])::text[])));
ALTER TABLE broker_offering ADD CONSTRAINT offering_of_cards_or_storage CHECK ((((gpu_model_id IS NULL) AND ((state)::text = 'metered'::text)) OR ((gpu_model_id IS NOT NULL) AND (NOT ((state)::text = 'metered'::text)))));
ALTER TABLE broker_offering ADD CONSTRAINT offering_once UNIQUE (gpu_model_id, profile, isolation, price_class, region);
ALTER TABLE broker_offering ADD CONSTRAINT offering_state_known CHECK (((state)::text = ANY ((ARRAY['draft'::character varying, 'published'::character varying, 'retired'::character varying, 'metered'::character varying])::text[])));
ALTER TABLE broker_orphan ADD COLUMN agreed_at timestamp with time zone;
ALTER TABLE broker_orphan ADD COLUMN cluster_id character varying(40);
ALTER TABLE broker_orphan ADD COLUMN found_at timestamp with time zone NOT NULL;
ALTER TABLE broker_orphan ADD COLUMN held_at timestamp with time zone;
ALTER TABLE broker_orphan ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE broker_orphan ADD COLUMN known boolean NOT NULL;
ALTER TABLE broker_orphan ADD COLUMN name character varying(80) NOT NULL;
ALTER TABLE broker_orphan ADD COLUMN told_at timestamp with time zone;
ALTER TABLE broker_orphan ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_orphan ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_orphan ADD CONSTRAINT orphan_once_per_cluster UNIQUE NULLS NOT DISTINCT (cluster_id, name);
ALTER TABLE broker_simulatednode ADD COLUMN config character varying(63) NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN cuts jsonb NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN ill character varying(10) NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN ills jsonb NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN known jsonb NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN node character varying(40) NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN tainted boolean NOT NULL;
ALTER TABLE broker_simulatednode ADD COLUMN told_at timestamp with time zone;
ALTER TABLE broker_simulatednode ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_simulatednode ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_simulatednode ADD CONSTRAINT (generated) PRIMARY KEY (node);
ALTER TABLE broker_simulatedpod ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE broker_simulatedpod ADD COLUMN gone_at timestamp with time zone;
ALTER TABLE broker_simulatedpod ADD COLUMN name character varying(80) NOT NULL;
ALTER TABLE broker_simulatedpod ADD COLUMN nodes jsonb NOT NULL;
ALTER TABLE broker_simulatedpod ADD COLUMN ready_at timestamp with time zone;
ALTER TABLE broker_simulatedpod ADD COLUMN refused character varying(200) NOT NULL;
ALTER TABLE broker_simulatedpod ADD COLUMN slow boolean NOT NULL;
ALTER TABLE broker_simulatedpod ADD CONSTRAINT (generated) PRIMARY KEY (name);
ALTER TABLE broker_simulatedvolume ADD COLUMN gone_at timestamp with time zone;
ALTER TABLE broker_simulatedvolume ADD COLUMN last_used_by character varying(80) NOT NULL;
ALTER TABLE broker_simulatedvolume ADD COLUMN made_at timestamp with time zone NOT NULL;
ALTER TABLE broker_simulatedvolume ADD COLUMN name character varying(80) NOT NULL;
ALTER TABLE broker_simulatedvolume ADD COLUMN size_gib integer NOT NULL;
ALTER TABLE broker_simulatedvolume ADD CONSTRAINT (generated) CHECK ((size_gib >= 0));
ALTER TABLE broker_simulatedvolume ADD CONSTRAINT (generated) PRIMARY KEY (name);
ALTER TABLE broker_transition ADD COLUMN "position" bigint NOT NULL DEFAULT nextval('broker_transition_position'::regclass);
ALTER TABLE broker_transition ADD COLUMN actor_id character varying(40) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN actor_kind character varying(16) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN actor_label character varying(254) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN after character varying(12) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_transition ADD COLUMN before character varying(12) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN cause character varying(200) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN generation integer NOT NULL;
ALTER TABLE broker_transition ADD COLUMN lease_id character varying(40) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN prev_at timestamp with time zone;
ALTER TABLE broker_transition ADD COLUMN prev_seq integer;
ALTER TABLE broker_transition ADD COLUMN price_class character varying(10) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN quantity integer NOT NULL;
ALTER TABLE broker_transition ADD COLUMN reason character varying(20) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN recorded_at timestamp with time zone NOT NULL DEFAULT clock_timestamp();
ALTER TABLE broker_transition ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_transition ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_transition ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_transition ADD CONSTRAINT (generated) CHECK ((generation >= 0));
ALTER TABLE broker_transition ADD CONSTRAINT (generated) CHECK ((prev_seq >= 0));
ALTER TABLE broker_transition ADD CONSTRAINT (generated) CHECK ((quantity >= 0));
ALTER TABLE broker_transition ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_transition ADD CONSTRAINT (generated) PRIMARY KEY (lease_id, seq);
ALTER TABLE broker_transition ADD CONSTRAINT transition_chained CHECK ((((seq = 0) AND (prev_seq IS NULL) AND (prev_at IS NULL)) OR ((seq > 0) AND (prev_seq IS NOT NULL) AND (prev_at IS NOT NULL) AND (prev_seq = (seq - 1)) AND (prev_at <= at))));
ALTER TABLE broker_transition ADD CONSTRAINT transition_follows FOREIGN KEY (lease_id, prev_seq, prev_at) REFERENCES broker_transition(lease_id, seq, at);
ALTER TABLE broker_transition ADD CONSTRAINT transition_moment_once UNIQUE (lease_id, seq, at);
ALTER TABLE broker_transition ADD CONSTRAINT transition_of_a_lease FOREIGN KEY (lease_id) REFERENCES broker_lease(id);
ALTER TABLE broker_transition ADD CONSTRAINT transition_whole_seconds CHECK ((at = date_trunc('second'::text, at)));
ALTER TABLE broker_volume ADD COLUMN cluster_id character varying(40);
ALTER TABLE broker_volume ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE broker_volume ADD COLUMN deleted_at timestamp with time zone;
ALTER TABLE broker_volume ADD COLUMN due_at timestamp with time zone;
ALTER TABLE broker_volume ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN left_in jsonb NOT NULL;
ALTER TABLE broker_volume ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN requested_by character varying(40) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN requested_by_label character varying(254) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN size_gib integer NOT NULL;
ALTER TABLE broker_volume ADD COLUMN state character varying(12) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_volume ADD COLUMN used_at timestamp with time zone;
ALTER TABLE broker_volume ADD COLUMN version integer NOT NULL;
ALTER TABLE broker_volume ADD CONSTRAINT (generated) CHECK ((size_gib >= 0));
ALTER TABLE broker_volume ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE broker_volume ADD CONSTRAINT (generated) FOREIGN KEY (cluster_id) REFERENCES broker_cluster(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_volume ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_volume ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE broker_volume ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE broker_volume ADD CONSTRAINT volume_holds_something CHECK ((size_gib >= 1));
ALTER TABLE broker_volume ADD CONSTRAINT volume_state_known CHECK (((state)::text = ANY ((ARRAY['ready'::character varying, 'deleting'::character varying, 'deleted'::character varying])::text[])));
ALTER TABLE broker_volumestep ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN cause character varying(200) NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN offering_id character varying(40) NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN prev_at timestamp with time zone;
ALTER TABLE broker_volumestep ADD COLUMN prev_gib integer;
ALTER TABLE broker_volumestep ADD COLUMN prev_seq integer;
ALTER TABLE broker_volumestep ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN recorded_at timestamp with time zone NOT NULL DEFAULT clock_timestamp();
ALTER TABLE broker_volumestep ADD COLUMN seq integer NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN size_gib integer NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN volume_id character varying(40) NOT NULL;
ALTER TABLE broker_volumestep ADD COLUMN xid bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint;
ALTER TABLE broker_volumestep ADD CONSTRAINT (generated) CHECK ((prev_gib >= 0));
ALTER TABLE broker_volumestep ADD CONSTRAINT (generated) CHECK ((prev_seq >= 0));
ALTER TABLE broker_volumestep ADD CONSTRAINT (generated) CHECK ((seq >= 0));
ALTER TABLE broker_volumestep ADD CONSTRAINT (generated) CHECK ((size_gib >= 0));
ALTER TABLE broker_volumestep ADD CONSTRAINT (generated) PRIMARY KEY (volume_id, seq);
ALTER TABLE broker_volumestep ADD CONSTRAINT volume_step_chained CHECK ((((seq = 0) AND (prev_seq IS NULL) AND (prev_at IS NULL) AND (prev_gib IS NULL) AND (size_gib > 0)) OR ((seq > 0) AND (prev_seq IS NOT NULL) AND (prev_at IS NOT NULL) AND (prev_gib IS NOT NULL) AND (prev_seq = (seq - 1)) AND (prev_at <= at) AND (prev_gib > 0))));
ALTER TABLE broker_volumestep ADD CONSTRAINT volume_step_follows FOREIGN KEY (volume_id, prev_seq, prev_at, prev_gib, offering_id, project_id) REFERENCES broker_volumestep(volume_id, seq, at, size_gib, offering_id, project_id);
ALTER TABLE broker_volumestep ADD CONSTRAINT volume_step_moment_once UNIQUE (volume_id, seq, at, size_gib, offering_id, project_id);
ALTER TABLE broker_volumestep ADD CONSTRAINT volume_step_of_a_volume FOREIGN KEY (volume_id) REFERENCES broker_volume(id);
ALTER TABLE broker_volumestep ADD CONSTRAINT volume_step_whole_seconds CHECK ((at = date_trunc('second'::text, at)));
ALTER TABLE cache ADD COLUMN cache_key character varying(255) NOT NULL;
ALTER TABLE cache ADD COLUMN expires timestamp with time zone NOT NULL;
ALTER TABLE cache ADD COLUMN value text NOT NULL;
ALTER TABLE cache ADD CONSTRAINT (generated) PRIMARY KEY (cache_key);
ALTER TABLE django_content_type ADD COLUMN app_label character varying(100) NOT NULL;
ALTER TABLE django_content_type ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE django_content_type ADD COLUMN model character varying(100) NOT NULL;
ALTER TABLE django_content_type ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE django_content_type ADD CONSTRAINT (generated) UNIQUE (app_label, model);
ALTER TABLE django_migrations ADD COLUMN app character varying(255) NOT NULL;
ALTER TABLE django_migrations ADD COLUMN applied timestamp with time zone NOT NULL;
ALTER TABLE django_migrations ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE django_migrations ADD COLUMN name character varying(255) NOT NULL;
ALTER TABLE django_migrations ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE django_session ADD COLUMN expire_date timestamp with time zone NOT NULL;
ALTER TABLE django_session ADD COLUMN session_data text NOT NULL;
ALTER TABLE django_session ADD COLUMN session_key character varying(40) NOT NULL;
ALTER TABLE django_session ADD CONSTRAINT (generated) PRIMARY KEY (session_key);
ALTER TABLE mfa_authenticator ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE mfa_authenticator ADD COLUMN data jsonb NOT NULL;
ALTER TABLE mfa_authenticator ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE mfa_authenticator ADD COLUMN last_used_at timestamp with time zone;
ALTER TABLE mfa_authenticator ADD COLUMN type character varying(20) NOT NULL;
ALTER TABLE mfa_authenticator ADD COLUMN user_id character varying(40) NOT NULL;
ALTER TABLE mfa_authenticator ADD CONSTRAINT (generated) FOREIGN KEY (user_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE mfa_authenticator ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE ports_ring ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE ports_ring ADD COLUMN claimed_until timestamp with time zone;
ALTER TABLE ports_ring ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE ports_ring ADD COLUMN request_id character varying(64) NOT NULL DEFAULT ''::character varying;
ALTER TABLE ports_ring ADD COLUMN subject character varying(80) NOT NULL;
ALTER TABLE ports_ring ADD COLUMN task character varying(80) NOT NULL;
ALTER TABLE ports_ring ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE ports_ring ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE socialaccount_socialaccount ADD COLUMN date_joined timestamp with time zone NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD COLUMN extra_data jsonb NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE socialaccount_socialaccount ADD COLUMN last_login timestamp with time zone NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD COLUMN provider character varying(200) NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD COLUMN uid character varying(191) NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD COLUMN user_id character varying(40) NOT NULL;
ALTER TABLE socialaccount_socialaccount ADD CONSTRAINT (generated) FOREIGN KEY (user_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE socialaccount_socialaccount ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE socialaccount_socialaccount ADD CONSTRAINT (generated) UNIQUE (provider, uid);
ALTER TABLE socialaccount_socialapp ADD COLUMN client_id character varying(191) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE socialaccount_socialapp ADD COLUMN key character varying(191) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN name character varying(40) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN provider character varying(30) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN provider_id character varying(200) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN secret character varying(191) NOT NULL;
ALTER TABLE socialaccount_socialapp ADD COLUMN settings jsonb NOT NULL;
ALTER TABLE socialaccount_socialapp ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE socialaccount_socialtoken ADD COLUMN account_id integer NOT NULL;
ALTER TABLE socialaccount_socialtoken ADD COLUMN app_id integer;
ALTER TABLE socialaccount_socialtoken ADD COLUMN expires_at timestamp with time zone;
ALTER TABLE socialaccount_socialtoken ADD COLUMN id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE socialaccount_socialtoken ADD COLUMN token text NOT NULL;
ALTER TABLE socialaccount_socialtoken ADD COLUMN token_secret text NOT NULL;
ALTER TABLE socialaccount_socialtoken ADD CONSTRAINT (generated) FOREIGN KEY (account_id) REFERENCES socialaccount_socialaccount(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE socialaccount_socialtoken ADD CONSTRAINT (generated) FOREIGN KEY (app_id) REFERENCES socialaccount_socialapp(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE socialaccount_socialtoken ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE socialaccount_socialtoken ADD CONSTRAINT (generated) UNIQUE (app_id, account_id);
ALTER TABLE tenants_apitoken ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN digest character varying(64) NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN expires_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN last_used_at timestamp with time zone;
ALTER TABLE tenants_apitoken ADD COLUMN made_by character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE tenants_apitoken ADD COLUMN made_by_label character varying(254) NOT NULL DEFAULT ''::character varying;
ALTER TABLE tenants_apitoken ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN prefix character varying(16) NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN project_id character varying(40);
ALTER TABLE tenants_apitoken ADD COLUMN revoked_at timestamp with time zone;
ALTER TABLE tenants_apitoken ADD COLUMN scopes character varying(40)[] NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN service_account_id character varying(40);
ALTER TABLE tenants_apitoken ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_apitoken ADD COLUMN user_id character varying(40);
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) FOREIGN KEY (service_account_id) REFERENCES tenants_serviceaccount(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) FOREIGN KEY (user_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_apitoken ADD CONSTRAINT (generated) UNIQUE (prefix);
ALTER TABLE tenants_apitoken ADD CONSTRAINT token_has_one_bearer CHECK ((((user_id IS NULL) OR (service_account_id IS NULL)) AND (1 = (
  CASE
      WHEN (user_id IS NULL) THEN 1
      ELSE 0
  END +
  CASE
      WHEN (service_account_id IS NULL) THEN 1
      ELSE 0
  END))));
ALTER TABLE tenants_auditevent ADD COLUMN action character varying(60) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN actor_id character varying(40) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN actor_kind character varying(16) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN actor_label character varying(254) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN detail jsonb NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN request_id character varying(64) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN subject_id character varying(40) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN subject_label character varying(254) NOT NULL;
ALTER TABLE tenants_auditevent ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_auditevent ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_invitation ADD COLUMN accepted_at timestamp with time zone;
ALTER TABLE tenants_invitation ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN digest character varying(64) NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN email character varying(254) NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN expires_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN invited_by_id character varying(40);
ALTER TABLE tenants_invitation ADD COLUMN project_id character varying(40);
ALTER TABLE tenants_invitation ADD COLUMN revoked_at timestamp with time zone;
ALTER TABLE tenants_invitation ADD COLUMN role character varying(10) NOT NULL;
ALTER TABLE tenants_invitation ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_invitation ADD CONSTRAINT (generated) FOREIGN KEY (invited_by_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_invitation ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_invitation ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_invitation ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_invitation ADD CONSTRAINT (generated) UNIQUE (digest);
ALTER TABLE tenants_invitation ADD CONSTRAINT invitation_role_known CHECK (((role)::text = ANY ((ARRAY['owner'::character varying, 'admin'::character varying, 'billing'::character varying, 'member'::character varying, 'viewer'::character varying])::text[])));
ALTER TABLE tenants_member ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_member ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_member ADD COLUMN project_id character varying(40);
ALTER TABLE tenants_member ADD COLUMN role character varying(10) NOT NULL;
ALTER TABLE tenants_member ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_member ADD COLUMN user_id character varying(40) NOT NULL;
ALTER TABLE tenants_member ADD COLUMN version integer NOT NULL;
ALTER TABLE tenants_member ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE tenants_member ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_member ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_member ADD CONSTRAINT (generated) FOREIGN KEY (user_id) REFERENCES tenants_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_member ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_member ADD CONSTRAINT member_once UNIQUE NULLS NOT DISTINCT (tenant_id, user_id, project_id);
ALTER TABLE tenants_member ADD CONSTRAINT member_role_known CHECK (((role)::text = ANY ((ARRAY['owner'::character varying, 'admin'::character varying, 'billing'::character varying, 'member'::character varying, 'viewer'::character varying])::text[])));
ALTER TABLE tenants_project ADD COLUMN archived_at timestamp with time zone;
ALTER TABLE tenants_project ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_project ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_project ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE tenants_project ADD COLUMN parent_id character varying(40);
ALTER TABLE tenants_project ADD COLUMN path character varying(40)[] NOT NULL;
ALTER TABLE tenants_project ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_project ADD COLUMN version integer NOT NULL;
ALTER TABLE tenants_project ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE tenants_project ADD CONSTRAINT (generated) FOREIGN KEY (parent_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_project ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_project ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_project ADD CONSTRAINT project_name_once UNIQUE NULLS NOT DISTINCT (tenant_id, parent_id, name);
ALTER TABLE tenants_quota ADD COLUMN "limit" bigint NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN kind character varying(12) NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN project_id character varying(40) NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN soft_limit bigint NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN used bigint NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN version integer NOT NULL;
ALTER TABLE tenants_quota ADD COLUMN window_start timestamp with time zone;
ALTER TABLE tenants_quota ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE tenants_quota ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_quota ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_quota ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_quota ADD CONSTRAINT quota_kind_known CHECK (((kind)::text = ANY ((ARRAY['units'::character varying, 'gpu_seconds'::character varying, 'storage'::character varying, 'burn'::character varying])::text[])));
ALTER TABLE tenants_quota ADD CONSTRAINT quota_never_exceeded CHECK (((used >= 0) AND (used <= "limit")));
ALTER TABLE tenants_quota ADD CONSTRAINT quota_once_per_node UNIQUE (tenant_id, project_id, kind);
ALTER TABLE tenants_quota ADD CONSTRAINT quota_soft_below_hard CHECK (((soft_limit >= 0) AND (soft_limit <= "limit")));
ALTER TABLE tenants_serviceaccount ADD COLUMN closed_at timestamp with time zone;
ALTER TABLE tenants_serviceaccount ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_serviceaccount ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_serviceaccount ADD COLUMN made_by character varying(40) NOT NULL DEFAULT ''::character varying;
ALTER TABLE tenants_serviceaccount ADD COLUMN made_by_label character varying(254) NOT NULL DEFAULT ''::character varying;
ALTER TABLE tenants_serviceaccount ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE tenants_serviceaccount ADD COLUMN project_id character varying(40);
ALTER TABLE tenants_serviceaccount ADD COLUMN role character varying(10) NOT NULL;
ALTER TABLE tenants_serviceaccount ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_serviceaccount ADD COLUMN version integer NOT NULL;
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT (generated) FOREIGN KEY (project_id) REFERENCES tenants_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT service_account_name_once UNIQUE (tenant_id, name);
ALTER TABLE tenants_serviceaccount ADD CONSTRAINT service_account_role_known CHECK (((role)::text = ANY ((ARRAY['owner'::character varying, 'admin'::character varying, 'billing'::character varying, 'member'::character varying, 'viewer'::character varying])::text[])));
ALTER TABLE tenants_storedanswer ADD COLUMN at timestamp with time zone NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN bearer character varying(40) NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN body text NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN body_digest character varying(64) NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN headers jsonb NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY;
ALTER TABLE tenants_storedanswer ADD COLUMN key character varying(255) NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN method character varying(7) NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN path character varying(300) NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN status smallint NOT NULL;
ALTER TABLE tenants_storedanswer ADD COLUMN tenant_id character varying(40) NOT NULL;
ALTER TABLE tenants_storedanswer ADD CONSTRAINT (generated) CHECK ((status >= 0));
ALTER TABLE tenants_storedanswer ADD CONSTRAINT (generated) FOREIGN KEY (tenant_id) REFERENCES tenants_tenant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tenants_storedanswer ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_storedanswer ADD CONSTRAINT answer_once_per_key UNIQUE (tenant_id, bearer, method, path, key);
ALTER TABLE tenants_tenant ADD COLUMN created_at timestamp with time zone NOT NULL;
ALTER TABLE tenants_tenant ADD COLUMN currency character varying(3) NOT NULL;
ALTER TABLE tenants_tenant ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_tenant ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE tenants_tenant ADD COLUMN suspended_at timestamp with time zone;
ALTER TABLE tenants_tenant ADD COLUMN time_zone character varying(60) NOT NULL;
ALTER TABLE tenants_tenant ADD COLUMN version integer NOT NULL;
ALTER TABLE tenants_tenant ADD CONSTRAINT (generated) CHECK ((version >= 0));
ALTER TABLE tenants_tenant ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_user ADD COLUMN email character varying(254) NOT NULL;
ALTER TABLE tenants_user ADD COLUMN id character varying(40) NOT NULL;
ALTER TABLE tenants_user ADD COLUMN is_active boolean NOT NULL;
ALTER TABLE tenants_user ADD COLUMN is_staff boolean NOT NULL;
ALTER TABLE tenants_user ADD COLUMN joined_at timestamp with time zone;
ALTER TABLE tenants_user ADD COLUMN last_login timestamp with time zone;
ALTER TABLE tenants_user ADD COLUMN name character varying(120) NOT NULL;
ALTER TABLE tenants_user ADD COLUMN password character varying(128) NOT NULL;
ALTER TABLE tenants_user ADD CONSTRAINT (generated) PRIMARY KEY (id);
ALTER TABLE tenants_user ADD CONSTRAINT (generated) UNIQUE (email);
CREATE CONSTRAINT TRIGGER sum_of_its_lines AFTER INSERT ON billing_creditnote DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_odd_note();
CREATE CONSTRAINT TRIGGER sum_of_its_returns AFTER INSERT ON billing_creditnote DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_odd_return_sum();
CREATE EXTENSION btree_gist;
CREATE EXTENSION plpgsql;
CREATE INDEX (generated) ON account_emailaddress USING btree (email varchar_pattern_ops);
CREATE INDEX (generated) ON account_emailaddress USING btree (email);
CREATE INDEX (generated) ON account_emailaddress USING btree (user_id varchar_pattern_ops);
CREATE INDEX (generated) ON account_emailaddress USING btree (user_id);
CREATE INDEX (generated) ON account_emailconfirmation USING btree (email_address_id);
CREATE INDEX (generated) ON account_emailconfirmation USING btree (key varchar_pattern_ops);
CREATE INDEX (generated) ON auth_group USING btree (name varchar_pattern_ops);
CREATE INDEX (generated) ON auth_group_permissions USING btree (group_id);
CREATE INDEX (generated) ON auth_group_permissions USING btree (permission_id);
CREATE INDEX (generated) ON auth_permission USING btree (content_type_id);
CREATE INDEX (generated) ON billing_autotopup USING btree (tenant_id);
CREATE INDEX (generated) ON billing_balancedraw USING btree (tenant_id);
CREATE INDEX (generated) ON billing_billingperiod USING btree (tenant_id);
CREATE INDEX (generated) ON billing_budget USING btree (project_id);
CREATE INDEX (generated) ON billing_budget USING btree (tenant_id);
CREATE INDEX (generated) ON billing_budgetalert USING btree (budget_id);
CREATE INDEX (generated) ON billing_budgetalert USING btree (period_id);
CREATE INDEX (generated) ON billing_budgetalert USING btree (tenant_id);
CREATE INDEX (generated) ON billing_budgetmonth USING btree (budget_id);
CREATE INDEX (generated) ON billing_budgetmonth USING btree (period_id);
CREATE INDEX (generated) ON billing_budgetmonth USING btree (tenant_id);
CREATE INDEX (generated) ON billing_budgetstop USING btree (budget_id);
CREATE INDEX (generated) ON billing_budgetstop USING btree (period_id);
CREATE INDEX (generated) ON billing_budgetstop USING btree (tenant_id);
CREATE INDEX (generated) ON billing_cardform USING btree (tenant_id);
CREATE INDEX (generated) ON billing_commitment USING btree (offering_id);
CREATE INDEX (generated) ON billing_commitment USING btree (tenant_id);
CREATE INDEX (generated) ON billing_correction USING btree (price_version_id);
CREATE INDEX (generated) ON billing_correctionpart USING btree (share_id);
CREATE INDEX (generated) ON billing_correctionpart USING btree (tenant_id);
CREATE INDEX (generated) ON billing_correctionshare USING btree (correction_id);
CREATE INDEX (generated) ON billing_correctionshare USING btree (tenant_id);
CREATE INDEX (generated) ON billing_creditnote USING btree (invoice_id);
CREATE INDEX (generated) ON billing_creditnote USING btree (tenant_id);
CREATE INDEX (generated) ON billing_creditnoteline USING btree (credit_note_id);
CREATE INDEX (generated) ON billing_creditnoteline USING btree (line_id);
CREATE INDEX (generated) ON billing_creditnoteline USING btree (tenant_id);
CREATE INDEX (generated) ON billing_discount USING btree (campaign_id);
CREATE INDEX (generated) ON billing_discount USING btree (tenant_id);
CREATE INDEX (generated) ON billing_dispute USING btree (credit_note_id);
CREATE INDEX (generated) ON billing_dispute USING btree (invoice_id);
CREATE INDEX (generated) ON billing_dispute USING btree (line_id);
CREATE INDEX (generated) ON billing_dispute USING btree (tenant_id);
CREATE INDEX (generated) ON billing_disputestep USING btree (dispute_id);
CREATE INDEX (generated) ON billing_disputestep USING btree (tenant_id);
CREATE INDEX (generated) ON billing_dunningstep USING btree (invoice_id);
CREATE INDEX (generated) ON billing_dunningstep USING btree (tenant_id);
CREATE INDEX (generated) ON billing_grant USING btree (offering_id);
CREATE INDEX (generated) ON billing_grant USING btree (project_id);
CREATE INDEX (generated) ON billing_grant USING btree (tenant_id);
CREATE INDEX (generated) ON billing_grantdraw USING btree (grant_id);
CREATE INDEX (generated) ON billing_grantdraw USING btree (invoice_id);
CREATE INDEX (generated) ON billing_grantdraw USING btree (line_id);
CREATE INDEX (generated) ON billing_grantdraw USING btree (tenant_id);
CREATE INDEX (generated) ON billing_grantlapse USING btree (tenant_id);
CREATE INDEX (generated) ON billing_grantreturn USING btree (credit_note_id);
CREATE INDEX (generated) ON billing_grantreturn USING btree (grant_id);
CREATE INDEX (generated) ON billing_grantreturn USING btree (tenant_id);
CREATE INDEX (generated) ON billing_hold USING btree (tenant_id);
CREATE INDEX (generated) ON billing_holdpart USING btree (hold_id);
CREATE INDEX (generated) ON billing_holdpart USING btree (month_id);
CREATE INDEX (generated) ON billing_holdpart USING btree (tenant_id);
CREATE INDEX (generated) ON billing_invoice USING btree (period_id);
CREATE INDEX (generated) ON billing_invoice USING btree (tenant_id);
CREATE INDEX (generated) ON billing_invoiceline USING btree (tenant_id);
CREATE INDEX (generated) ON billing_invoicetax USING btree (rate_id);
CREATE INDEX (generated) ON billing_invoicetax USING btree (tenant_id);
CREATE INDEX (generated) ON billing_keptpaper USING btree (tenant_id);
CREATE INDEX (generated) ON billing_ledgeraccount USING btree (tenant_id);
CREATE INDEX (generated) ON billing_ledgerseal USING btree (tenant_id);
CREATE INDEX (generated) ON billing_letter USING btree (tenant_id);
CREATE INDEX (generated) ON billing_minimum USING btree (tenant_id);
CREATE INDEX (generated) ON billing_payment USING btree (invoice_id);
CREATE INDEX (generated) ON billing_payment USING btree (tenant_id);
CREATE INDEX (generated) ON billing_paymentdispute USING btree (payment_id);
CREATE INDEX (generated) ON billing_paymentdispute USING btree (tenant_id);
CREATE INDEX (generated) ON billing_paymentrefund USING btree (payment_id);
CREATE INDEX (generated) ON billing_paymentrefund USING btree (tenant_id);
CREATE INDEX (generated) ON billing_priceversion USING btree (offering_id);
CREATE INDEX (generated) ON billing_priceversion USING btree (rate_card_id);
CREATE INDEX (generated) ON billing_quote USING btree (tenant_id);
CREATE INDEX (generated) ON billing_refund USING btree (payment_id);
CREATE INDEX (generated) ON billing_refund USING btree (tenant_id);
CREATE INDEX (generated) ON billing_simulatedrefund USING btree (charge_id);
CREATE INDEX (generated) ON billing_stripecharge USING btree (tenant_id);
CREATE INDEX (generated) ON billing_stripecommand USING btree (tenant_id);
CREATE INDEX (generated) ON billing_stripecustomer USING btree (tenant_id);
CREATE INDEX (generated) ON billing_stripedifference USING btree (day_id);
CREATE INDEX (generated) ON billing_stripeseen USING btree (day_id);
CREATE INDEX (generated) ON billing_tenantterms USING btree (tenant_id);
CREATE INDEX (generated) ON billing_tokencap USING btree (tenant_id);
CREATE INDEX (generated) ON billing_tokenday USING btree (cap_id);
CREATE INDEX (generated) ON billing_tokenday USING btree (tenant_id);
CREATE INDEX (generated) ON billing_tokenlease USING btree (cap_id);
CREATE INDEX (generated) ON billing_tokenlease USING btree (tenant_id);
CREATE INDEX (generated) ON billing_tokenpart USING btree (day_id);
CREATE INDEX (generated) ON billing_tokenpart USING btree (of_id);
CREATE INDEX (generated) ON billing_tokenpart USING btree (tenant_id);
CREATE INDEX (generated) ON billing_topup USING btree (tenant_id);
CREATE INDEX (generated) ON billing_wallet USING btree (tenant_id);
CREATE INDEX (generated) ON billing_walletpart USING btree (hold_id);
CREATE INDEX (generated) ON billing_walletpart USING btree (period_id);
CREATE INDEX (generated) ON billing_walletpart USING btree (tenant_id);
CREATE INDEX (generated) ON billing_walletpart USING btree (wallet_id);
CREATE INDEX (generated) ON broker_allocation USING btree (gpu_id);
CREATE INDEX (generated) ON broker_allocation USING btree (lease_id);
CREATE INDEX (generated) ON broker_allocation USING btree (tenant_id);
CREATE INDEX (generated) ON broker_clustercredential USING btree (cluster_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_examination USING btree (cluster_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_gpu USING btree (gpu_model_id);
CREATE INDEX (generated) ON broker_gpu USING btree (node_id);
CREATE INDEX (generated) ON broker_inventorychange USING btree (gpu_id);
CREATE INDEX (generated) ON broker_inventorychange USING btree (node_id);
CREATE INDEX (generated) ON broker_layoutchange USING btree (id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_layoutchange USING btree (node_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_layoutchange USING btree (node_id);
CREATE INDEX (generated) ON broker_lease USING btree (offering_id);
CREATE INDEX (generated) ON broker_move USING btree (id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_move USING btree (lease_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_move USING btree (lease_id);
CREATE INDEX (generated) ON broker_move USING btree (tenant_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_move USING btree (tenant_id);
CREATE INDEX (generated) ON broker_moveplan USING btree (cluster_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_moveplan USING btree (cluster_id);
CREATE INDEX (generated) ON broker_moveplan USING btree (id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_node USING btree (cluster_id);
CREATE INDEX (generated) ON broker_offering USING btree (gpu_model_id);
CREATE INDEX (generated) ON broker_orphan USING btree (cluster_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_orphan USING btree (cluster_id);
CREATE INDEX (generated) ON broker_simulatednode USING btree (node varchar_pattern_ops);
CREATE INDEX (generated) ON broker_simulatedvolume USING btree (name varchar_pattern_ops);
CREATE INDEX (generated) ON broker_volume USING btree (cluster_id varchar_pattern_ops);
CREATE INDEX (generated) ON broker_volume USING btree (cluster_id);
CREATE INDEX (generated) ON broker_volume USING btree (id varchar_pattern_ops);
CREATE INDEX (generated) ON django_session USING btree (expire_date);
CREATE INDEX (generated) ON django_session USING btree (session_key varchar_pattern_ops);
CREATE INDEX (generated) ON mfa_authenticator USING btree (user_id varchar_pattern_ops);
CREATE INDEX (generated) ON mfa_authenticator USING btree (user_id);
CREATE INDEX (generated) ON socialaccount_socialaccount USING btree (user_id varchar_pattern_ops);
CREATE INDEX (generated) ON socialaccount_socialaccount USING btree (user_id);
CREATE INDEX (generated) ON socialaccount_socialtoken USING btree (account_id);
CREATE INDEX (generated) ON socialaccount_socialtoken USING btree (app_id);
CREATE INDEX (generated) ON tenants_apitoken USING btree (project_id);
CREATE INDEX (generated) ON tenants_apitoken USING btree (service_account_id);
CREATE INDEX (generated) ON tenants_apitoken USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_apitoken USING btree (user_id);
CREATE INDEX (generated) ON tenants_auditevent USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_invitation USING btree (invited_by_id);
CREATE INDEX (generated) ON tenants_invitation USING btree (project_id);
CREATE INDEX (generated) ON tenants_invitation USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_member USING btree (project_id);
CREATE INDEX (generated) ON tenants_member USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_member USING btree (user_id);
CREATE INDEX (generated) ON tenants_project USING btree (parent_id);
CREATE INDEX (generated) ON tenants_project USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_quota USING btree (project_id);
CREATE INDEX (generated) ON tenants_quota USING btree (tenant_id);
CREATE INDEX (generated) ON tenants_serviceaccount USING btree (project_id);
CREATE INDEX (generated) ON tenants_serviceaccount USING btree (tenant_id);
CREATE INDEX allocation_changed ON broker_allocation USING btree (xid);
CREATE INDEX allocation_freed ON broker_allocation USING btree (gpu_id, released_at);
CREATE INDEX allocation_held ON broker_allocation USING btree (gpu_id) WHERE (released_at IS NULL);
CREATE INDEX allocation_lately ON broker_allocation USING btree (released_at);
CREATE INDEX allocation_leaving ON broker_allocation USING btree (leaving_since) WHERE ((released_at IS NULL) AND (leaving_since IS NOT NULL));
CREATE INDEX audit_newest_first ON tenants_auditevent USING btree (tenant_id, at DESC, id DESC);
CREATE INDEX budget_stop_due ON billing_budgetstop USING btree (due_at) WHERE ((done_at IS NULL) AND (lifted_at IS NULL));
CREATE INDEX cache_expires ON cache USING btree (expires);
CREATE INDEX card_form_by_session ON billing_cardform USING btree (session_id);
CREATE INDEX card_form_waits ON billing_cardform USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX change_of_card ON broker_inventorychange USING btree (gpu_id, at);
CREATE INDEX charge_billed_late ON billing_ratedcharge USING btree (billed_period_id) WHERE (NOT (billed_period_id = period_id));
CREATE INDEX charge_of_month ON billing_ratedcharge USING btree (period_id);
CREATE INDEX cluster_changed ON broker_cluster USING btree (xid);
CREATE INDEX correction_of_lease ON billing_correctionpart USING btree (lease_id);
CREATE INDEX gpu_changed ON broker_gpu USING btree (xid);
CREATE INDEX grant_ends ON billing_grant USING btree (expires_at);
CREATE INDEX hold_open ON billing_hold USING btree (looked_at) WHERE (settled_at IS NULL);
CREATE INDEX invoice_to_be_paid ON billing_invoice USING btree (finalized_at) WHERE ((status)::text = 'finalized'::text);
CREATE INDEX layout_change_due ON broker_layoutchange USING btree (due_at) WHERE (NOT ((step)::text = ANY ((ARRAY['cancelled'::character varying, 'done'::character varying, 'quarantined'::character varying])::text[])));
CREATE INDEX layout_change_of_node ON broker_layoutchange USING btree (node_id, planned_at);
CREATE INDEX lease_due ON broker_lease USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX lease_ended ON broker_lease USING btree (ended_at);
CREATE INDEX lease_newest_first ON broker_lease USING btree (tenant_id, id DESC);
CREATE INDEX lease_of_project ON broker_lease USING btree (project_id, id DESC);
CREATE INDEX lease_queue ON broker_lease USING btree (offering_id, id) WHERE ((state)::text = 'queued'::text);
CREATE INDEX letter_due ON billing_letter USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX letter_unsent ON billing_letter USING btree (made_at) WHERE ((unsent)::text = ANY ((ARRAY['nobody'::character varying, 'given_up'::character varying])::text[]));
CREATE INDEX move_plan_due ON broker_moveplan USING btree (due_at) WHERE (NOT ((state)::text = ANY ((ARRAY['cancelled'::character varying, 'declined'::character varying, 'done'::character varying, 'failed'::character varying])::text[])));
CREATE INDEX no_strangers_on_a_soft_card ON broker_allocation USING gist (gpu_id, tenant_id) WHERE ((released_at IS NULL) AND ((isolation)::text = ANY ((ARRAY['soft'::character varying, 'none'::character varying])::text[])) AND (NOT may_share));
CREATE INDEX node_changed ON broker_node USING btree (xid);
CREATE INDEX object_of_order ON broker_clusterobject USING btree (cluster_id, order_name);
CREATE INDEX one_commitment_at_a_time ON billing_commitment USING gist (tenant_id, offering_id, valid);
CREATE INDEX one_isolation_per_card ON broker_allocation USING gist (gpu_id, isolation) WHERE (released_at IS NULL);
CREATE INDEX one_lease_per_place ON broker_allocation USING gist (gpu_id, placement) WHERE (released_at IS NULL);
CREATE INDEX one_minimum_at_a_time ON billing_minimum USING gist (tenant_id, valid);
CREATE INDEX one_price_at_a_time ON billing_priceversion USING gist (rate_card_id, offering_id, currency, valid);
CREATE INDEX one_tax_rate_at_a_time ON billing_taxrate USING gist (jurisdiction, category, valid);
CREATE INDEX payment_stuck ON billing_payment USING btree (stuck_at) WHERE ((status)::text = 'stuck'::text);
CREATE INDEX payment_waits ON billing_payment USING btree (due_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX periods_never_overlap ON billing_billingperiod USING gist (tenant_id, span);
CREATE INDEX price_in_tiers ON billing_priceversion USING btree (tenant_id) WHERE (NOT ((model)::text = 'flat'::text));
CREATE INDEX refund_stuck ON billing_refund USING btree (opened_at) WHERE ((status)::text = 'stuck'::text);
CREATE INDEX refund_waits ON billing_refund USING btree (due_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX ring_order ON ports_ring USING btree (at, id);
CREATE INDEX sealed_lately ON billing_ledgerseal USING btree (sealed_at);
CREATE INDEX stripe_charge_by_age ON billing_stripecharge USING btree (made_at);
CREATE INDEX stripe_charge_by_id ON billing_stripecharge USING btree (stripe_id);
CREATE INDEX stripe_customer_by_id ON billing_stripecustomer USING btree (customer_id);
CREATE INDEX stripe_day_waits ON billing_stripeday USING btree (due_at);
CREATE INDEX stripe_event_parked ON billing_stripeevent USING btree (received_at) WHERE ((state)::text = 'parked'::text);
CREATE INDEX stripe_event_waits ON billing_stripeevent USING btree (due_at) WHERE ((state)::text = 'waiting'::text);
CREATE INDEX topup_stuck ON billing_topup USING btree (opened_at) WHERE ((status)::text = 'stuck'::text);
CREATE INDEX topup_waits ON billing_topup USING btree (due_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX transfer_recorded ON billing_ledgertransfer USING brin (recorded_at) WITH (autosummarize='on');
CREATE INDEX transition_active_end ON broker_transition USING btree (at) WHERE ((before)::text = 'active'::text);
CREATE INDEX transition_billable_end ON broker_transition USING btree (tenant_id, xid) WHERE ((before)::text = 'active'::text);
CREATE INDEX transition_stream ON broker_transition USING btree (tenant_id, xid, "position");
CREATE INDEX volume_due ON broker_volume USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX volume_newest_first ON broker_volume USING btree (tenant_id, id DESC);
CREATE INDEX volume_step_news ON broker_volumestep USING btree (tenant_id, xid);
CREATE OR REPLACE FUNCTION count_parts_in()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
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
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_parts_out()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    UPDATE billing_budgetmonth m SET taken_num = m.taken_num - g.num, spent_num = m.spent_num - g.spent_num
      FROM (SELECT month_id, sum(num) AS num, sum(spent_num) AS spent_num FROM gone GROUP BY 1) g WHERE m.id = g.month_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_parts_over()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF EXISTS (SELECT FROM gone g FULL JOIN came c ON c.id = g.id
                WHERE (c.month_id, c.hold_id, c.tenant_id) IS DISTINCT FROM (g.month_id, g.hold_id, g.tenant_id)) THEN
      RAISE EXCEPTION 'a part stays with its hold and its month' USING ERRCODE = 'restrict_violation';
    END IF;
    UPDATE billing_budgetmonth m SET taken_num = m.taken_num + c.num, spent_num = m.spent_num + c.spent_num
      FROM (SELECT c.month_id, sum(c.num - g.num) AS num, sum(c.spent_num - g.spent_num) AS spent_num
              FROM came c JOIN gone g ON g.id = c.id GROUP BY 1) c WHERE m.id = c.month_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_token_part()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF NOT EXISTS (SELECT FROM billing_tokenday d JOIN billing_tokenlease l ON l.cap_id = d.cap_id
                    WHERE d.id = NEW.day_id AND l.id = NEW.of_id AND d.tenant_id = NEW.tenant_id) THEN
      RAISE EXCEPTION 'a part is of a lease and of a day of one token' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'UPDATE' THEN
      IF (NEW.day_id, NEW.of_id, NEW.tenant_id) IS DISTINCT FROM (OLD.day_id, OLD.of_id, OLD.tenant_id) THEN
        RAISE EXCEPTION 'a part stays with its lease and its day' USING ERRCODE = 'restrict_violation';
      END IF;
      UPDATE billing_tokenday SET taken_num = taken_num + NEW.num - OLD.num WHERE id = NEW.day_id AND NEW.num <> OLD.num;
    ELSE
      UPDATE billing_tokenday SET taken_num = taken_num + NEW.num WHERE id = NEW.day_id;
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_wallet_in()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
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
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_wallet_out()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    UPDATE billing_wallet w SET taken_num = w.taken_num - g.num
      FROM (SELECT wallet_id, sum(num) AS num FROM gone GROUP BY 1) g WHERE w.id = g.wallet_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION count_wallet_over()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF EXISTS (SELECT FROM gone g FULL JOIN came c ON c.id = g.id
                WHERE (c.wallet_id, c.hold_id, c.tenant_id) IS DISTINCT FROM (g.wallet_id, g.hold_id, g.tenant_id)) THEN
      RAISE EXCEPTION 'a part stays with its hold and its wallet' USING ERRCODE = 'restrict_violation';
    END IF;
    UPDATE billing_wallet w SET taken_num = w.taken_num + c.num
      FROM (SELECT c.wallet_id, sum(c.num - g.num) AS num FROM came c JOIN gone g ON g.id = c.id GROUP BY 1) c
     WHERE w.id = c.wallet_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION hold_once_free()
   RETURNS trigger
   LANGUAGE plpgsql
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  DECLARE freed timestamptz := (
    SELECT max(released_at) FROM broker_vacated
     WHERE gpu_id = NEW.gpu_id AND released_at > NEW.held_at
       AND start < upper(NEW.placement) AND stop > lower(NEW.placement));
  BEGIN
    IF freed IS NOT NULL THEN
      UPDATE broker_allocation SET held_at = freed WHERE id = NEW.id;
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION knock_with_token(wanted text, hashed text, at timestamp with time zone)
   RETURNS TABLE(token_id text, digest text, scopes text[], last_used_at timestamp with time zone, within text[], bearer_kind text, bearer_id text, bearer_label text, grants jsonb, tenant_id text, tenant_name text, time_zone text, currency text, suspended_at timestamp with time zone, version integer)
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  BEGIN
    FOR token_id, digest, scopes, last_used_at, within, bearer_kind, bearer_id, bearer_label, grants,
        tenant_id, tenant_name, time_zone, currency, suspended_at, version IN
    SELECT t.id::text, t.digest::text, t.scopes::text[], t.last_used_at, coalesce(w.path::text[], '{}'),
           CASE WHEN u.id IS NULL THEN 'service_account' ELSE 'user' END,
           coalesce(u.id, s.id)::text, coalesce(u.email, s.name)::text, g.held,
           n.id::text, n.name::text, n.time_zone::text, n.currency::text, n.suspended_at, n.version
      FROM tenants_apitoken t
      JOIN tenants_tenant n ON n.id = t.tenant_id
      LEFT JOIN tenants_project w ON w.id = t.project_id
      LEFT JOIN tenants_user u ON u.id = t.user_id AND u.is_active
      LEFT JOIN tenants_serviceaccount s ON s.id = t.service_account_id AND s.closed_at IS NULL
      CROSS JOIN LATERAL (
        SELECT coalesce(jsonb_agg(jsonb_build_array(r.role, coalesce(p.path, '{}'))), '[]') AS held
          FROM (SELECT m.role, m.project_id FROM tenants_member m
                 WHERE m.user_id = u.id AND m.tenant_id = t.tenant_id
                 UNION ALL
                SELECT s.role, s.project_id WHERE s.id IS NOT NULL) r
          LEFT JOIN tenants_project p ON p.id = r.project_id) g
     WHERE t.prefix = wanted AND t.digest = hashed AND t.revoked_at IS NULL AND t.expires_at > at
       AND (u.id IS NOT NULL OR s.id IS NOT NULL) AND g.held <> '[]'
    LOOP
      PERFORM set_config('app.tenant', tenant_id, true);
      RETURN NEXT;
    END LOOP;
  END $function$
  ;
CREATE OR REPLACE FUNCTION knock_with_user(who text, wanted text)
   RETURNS TABLE(grants jsonb, tenant_id text, tenant_name text, time_zone text, currency text, suspended_at timestamp with time zone, version integer, others jsonb)
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  DECLARE chosen text;
  BEGIN
    SELECT m.tenant_id INTO chosen FROM tenants_member m JOIN tenants_user u ON u.id = m.user_id
     WHERE m.user_id = who AND u.is_active
     ORDER BY m.tenant_id <> wanted, m.created_at, m.id LIMIT 1;
    IF chosen IS NULL THEN RETURN; END IF;
    PERFORM set_config('app.tenant', chosen, true);
    RETURN QUERY
    SELECT (SELECT jsonb_agg(jsonb_build_array(m.role, coalesce(p.path, '{}')))
              FROM tenants_member m LEFT JOIN tenants_project p ON p.id = m.project_id
             WHERE m.user_id = who AND m.tenant_id = chosen),
           n.id::text, n.name::text, n.time_zone::text, n.currency::text, n.suspended_at, n.version,
           (SELECT jsonb_agg(jsonb_build_array(o.id, o.name) ORDER BY o.name, o.id) FROM tenants_tenant o
             WHERE o.id IN (SELECT m.tenant_id FROM tenants_member m WHERE m.user_id = who))
      FROM tenants_tenant n WHERE n.id = chosen;
  END $function$
  ;
CREATE OR REPLACE FUNCTION note_card_gone()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    UPDATE broker_node SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.node_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION note_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    NEW.xid := pg_current_xact_id()::text::bigint;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION note_place_gone()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    UPDATE broker_gpu SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.gpu_id;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION open_balance()
   RETURNS trigger
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  BEGIN
    PERFORM set_config('app.ledger', 'posting', true);
    INSERT INTO billing_accountbalance (account_id, tenant_id, minor, floor)
    VALUES (NEW.id, NEW.tenant_id, 0, CASE WHEN NEW.type IN ('wallet_paid', 'wallet_promo') THEN 0 END);
    PERFORM set_config('app.ledger', '', true);
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone)
   RETURNS void
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  BEGIN
    PERFORM set_config('app.ledger', 'posting', true);
    INSERT INTO billing_ledgeraccount (tenant_id, type, currency, opened_at) VALUES (NULL, wanted, code, moment)
        ON CONFLICT DO NOTHING;
    PERFORM set_config('app.ledger', '', true);
  END $function$
  ;
CREATE OR REPLACE FUNCTION post_transfers()
   RETURNS trigger
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  DECLARE
    accounts bigint;
    moved bigint;
    odd text;
  BEGIN
    PERFORM set_config('app.ledger', 'posting', true);
    PERFORM FROM billing_accountbalance
      WHERE account_id IN (SELECT debit_account_id FROM added UNION SELECT credit_account_id FROM added)
      ORDER BY account_id FOR UPDATE;
    WITH pair AS MATERIALIZED (
      SELECT tenant_id, debit_account_id, credit_account_id, currency, sum(minor) AS minor
        FROM added GROUP BY tenant_id, debit_account_id, credit_account_id, currency
    ), leg AS (
      SELECT tenant_id, currency, debit_account_id AS account_id, minor FROM pair
       UNION ALL
      SELECT tenant_id, currency, credit_account_id, -minor FROM pair
    ), met AS MATERIALIZED (
      SELECT leg.account_id, coalesce(bool_and(a.currency = leg.currency
               AND (a.tenant_id IS NULL OR a.tenant_id = leg.tenant_id)), false) AS fits,
             sum(CASE WHEN a.type IN ('wallet_paid', 'wallet_promo', 'revenue', 'tax_payable', 'breakage')
                      THEN -leg.minor ELSE leg.minor END)::bigint AS minor
        FROM leg LEFT JOIN billing_ledgeraccount a ON a.id = leg.account_id
       GROUP BY leg.account_id
    ), posted AS (
      UPDATE billing_accountbalance b SET minor = b.minor + met.minor
        FROM met WHERE b.account_id = met.account_id AND met.fits
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM met), (SELECT count(*) FROM posted),
           (SELECT min(met.account_id)::text FROM met WHERE NOT met.fits)
      INTO accounts, moved, odd;
    IF accounts <> moved THEN
      RAISE EXCEPTION 'a transfer is between accounts of its own currency, of its own tenant or the platform, not %', odd
        USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'transfer_between_its_accounts';
    END IF;
    SELECT x.idem INTO odd FROM added x
      LEFT JOIN billing_ledgertransfer o
        ON o.id = x.reverses_id AND o.reverses_id IS NULL
       AND (o.tenant_id, o.debit_account_id, o.credit_account_id, o.minor)
         = (x.tenant_id, x.credit_account_id, x.debit_account_id, x.minor)
     WHERE x.reverses_id IS NOT NULL AND o.id IS NULL LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION '% is not the opposite of the transfer that it reverses', odd
        USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'reversal_is_the_opposite';
    END IF;
    PERFORM set_config('app.ledger', '', true);
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION price_tiles(model text, nano bigint, starts bigint[], prices bigint[])
   RETURNS boolean
   LANGUAGE sql
   IMMUTABLE
  AS $function$
    SELECT CASE
      WHEN model = 'flat' THEN starts IS NULL AND prices IS NULL
      WHEN starts IS NULL OR prices IS NULL OR cardinality(starts) = 0
        OR cardinality(starts) <> cardinality(prices)
        OR array_position(starts, NULL) IS NOT NULL OR array_position(prices, NULL) IS NOT NULL THEN false
      WHEN model = 'package' THEN cardinality(starts) = 1 AND starts[1] > 0 AND prices[1] >= 0
                              AND prices[1]::numeric * 3600 <= starts[1]::numeric * nano
      ELSE model IN ('graduated', 'volume') AND starts[1] > 0
       AND coalesce((SELECT bool_and(here > before) FROM (
             SELECT s AS here, lag(s) OVER (ORDER BY at) AS before FROM unnest(starts) WITH ORDINALITY AS t (s, at)) t
            WHERE before IS NOT NULL), true)
       AND (SELECT bool_and(p BETWEEN 0 AND nano) FROM unnest(prices) AS p)
    END
  $function$
  ;
CREATE OR REPLACE FUNCTION quota_counts_holdings()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    counted_in text := to_char(NEW.window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"');
    held numeric;
    spent numeric := 0;
  BEGIN
    PERFORM pg_advisory_xact_lock(1, hashtext(NEW.tenant_id));
    WITH below AS MATERIALIZED (
      SELECT l.id, l.quota_uses -> NEW.kind AS use
        FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
       WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state <> 'released'
         AND l.quota_uses ? NEW.kind
       ORDER BY l.id FOR NO KEY UPDATE OF l
    ), takes AS (
      SELECT below.id, win.key, coalesce(win.value, use ->> 'amount')::bigint AS amount
        FROM below LEFT JOIN LATERAL jsonb_each_text(use -> 'windows') AS win ON true
       WHERE NEW.kind <> 'gpu_seconds' OR win.key <= counted_in
    ), parts AS (
      SELECT id, jsonb_agg(jsonb_build_array(NEW.id, amount, key) ORDER BY key) AS parts,
             sum(amount) FILTER (WHERE NEW.kind <> 'gpu_seconds' OR key = counted_in) AS amount
        FROM takes GROUP BY id
    ), told AS (
      UPDATE broker_lease l
         SET quota_uses = jsonb_set(l.quota_uses, ARRAY[NEW.kind, 'parts'],
                                    l.quota_uses -> NEW.kind -> 'parts' || parts.parts)
        FROM parts WHERE parts.id = l.id RETURNING parts.amount
    )
    SELECT coalesce(sum(amount), 0) INTO held FROM told;
    IF NEW.kind = 'gpu_seconds' THEN
      SELECT coalesce(sum(least(asked, greatest(used - earlier, 0))), 0) INTO spent FROM (
        SELECT (l.quota_uses #>> ARRAY['gpu_seconds', 'windows', counted_in])::bigint AS asked,
               (SELECT coalesce(sum(value::bigint), 0) FROM jsonb_each_text(l.quota_uses #> '{gpu_seconds,windows}')
                 WHERE key < counted_in) AS earlier,
               (l.spent_s
                 + coalesce(floor(extract(epoch FROM l.ended_at - date_trunc('second', l.active_at)))::bigint, 0))
                 * l.quantity * o.milli_units AS used
          FROM broker_lease l JOIN tenants_project p ON p.id = l.project_id
          JOIN broker_offering o ON o.id = l.offering_id
         WHERE l.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND l.state = 'released'
           AND l.ended_at >= NEW.window_start
           AND (l.active_at IS NOT NULL OR l.spent_s > 0)) over_by_now;
    END IF;
    IF NEW.kind = 'storage' THEN
      SELECT coalesce(sum(v.size_gib), 0) INTO held FROM broker_volume v JOIN tenants_project p ON p.id = v.project_id
       WHERE v.tenant_id = NEW.tenant_id AND NEW.project_id = ANY(p.path) AND v.state <> 'deleted';
    END IF;
    NEW.used := NEW.used + held + spent;
    NEW."limit" := greatest(NEW."limit", NEW.used);
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_after_released()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF NEW.before = 'released' THEN
      RAISE EXCEPTION 'lease % is released: nothing follows', NEW.lease_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_campaign_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - 'until' - 'redeemed' IS DISTINCT FROM to_jsonb(OLD) - 'until' - 'redeemed'
       OR NEW.redeemed < OLD.redeemed THEN
      RAISE EXCEPTION 'campaign % only ends', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
      BEGIN
        RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
      END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_change_of_final()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    invoice text;
  BEGIN
    SELECT t.invoice_id INTO invoice FROM (SELECT DISTINCT invoice_id FROM touched) t
     WHERE EXISTS (SELECT FROM billing_invoice i
                    WHERE i.id = t.invoice_id AND i.status NOT IN ('draft', 'closing') OFFSET 0)
     LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'invoice % is final', invoice USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_commitment_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      IF EXISTS (SELECT FROM billing_billingperiod p
                  WHERE p.tenant_id = NEW.tenant_id AND p.status = 'closed' AND upper(p.span) > lower(NEW.valid)) THEN
        RAISE EXCEPTION 'commitment % begins in a month that is closed', NEW.id USING ERRCODE = 'restrict_violation';
      END IF;
      RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
       OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid)
       OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
      RAISE EXCEPTION 'commitment % only ends', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT FROM billing_billingperiod p
                WHERE p.tenant_id = OLD.tenant_id AND p.status = 'closed' AND p.span && OLD.valid
                  AND upper(p.span) > upper(NEW.valid)
                  AND upper(NEW.valid) IS DISTINCT FROM upper(OLD.valid)) THEN
      RAISE EXCEPTION 'commitment % was reckoned with in a month that is closed', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_discount_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{last_month,tenant_id}'::text[]
         IS DISTINCT FROM to_jsonb(OLD) - '{last_month,tenant_id}'::text[]
       OR coalesce(NEW.last_month, 'for good') > coalesce(OLD.last_month, 'for good') THEN
      RAISE EXCEPTION 'discount % only ends', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT FROM billing_monthcharge c JOIN billing_billingperiod p ON p.id = c.billed_period_id
                WHERE c.source = OLD.id AND c.tenant_id = OLD.tenant_id AND p.label > NEW.last_month) THEN
      RAISE EXCEPTION 'discount % was given in a later month', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_final_invoice_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF OLD.status NOT IN ('draft', 'closing') AND (TG_OP = 'DELETE' OR
       (NEW.tenant_id, NEW.period_id, NEW.series, NEW.number, NEW.currency, NEW.total, NEW.finalized_at, NEW.tax, NEW.treatment, NEW.customer, NEW.supplier, NEW.due_at)
         IS DISTINCT FROM
       (OLD.tenant_id, OLD.period_id, OLD.series, OLD.number, OLD.currency, OLD.total, OLD.finalized_at, OLD.tax, OLD.treatment, OLD.customer, OLD.supplier, OLD.due_at)) THEN
      RAISE EXCEPTION 'invoice % is final', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_final_line_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    invoice text := CASE WHEN TG_OP = 'DELETE' THEN OLD.invoice_id ELSE NEW.invoice_id END;
  BEGIN
    IF EXISTS (SELECT FROM billing_invoice WHERE id = invoice AND status NOT IN ('draft', 'closing')) THEN
      RAISE EXCEPTION 'invoice % is final', invoice USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_foreign_share()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF EXISTS (SELECT FROM billing_correction c WHERE c.id = NEW.correction_id AND c.kind = 'lease'
                  AND NOT EXISTS (SELECT FROM broker_lease l WHERE l.id = c.lease_id AND l.tenant_id = NEW.tenant_id)) THEN
      RAISE EXCEPTION 'a correction of a lease is of its own tenant' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_granted_money()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF (SELECT sum(n.total - n.off_due - n.to_grants) FROM billing_creditnote n WHERE n.invoice_id = NEW.invoice_id)
       > (SELECT i.total - CASE i.status WHEN 'finalized' THEN i.total - i.settled - NEW.off_due ELSE 0 END
                 - (SELECT sum(n.off_due) FROM billing_creditnote n WHERE n.invoice_id = i.id)
                 - (SELECT sum(d.minor) FROM billing_grantdraw d WHERE d.invoice_id = i.id)
            FROM billing_invoice i WHERE i.id = NEW.invoice_id) THEN
      RAISE EXCEPTION 'credit note % gives back more money than was paid', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_of_paid_money';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_later_lines()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    note text;
  BEGIN
    SELECT n.id INTO note FROM billing_creditnote n
     WHERE n.id IN (SELECT credit_note_id FROM added)
       AND n.total < (SELECT sum(c.minor + c.tax_minor) FROM billing_creditnoteline c WHERE c.credit_note_id = n.id);
    IF FOUND THEN
      RAISE EXCEPTION 'credit note % is not the sum of its lines', note
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_minimum_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - '{valid,tenant_id}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{valid,tenant_id}'::text[]
       OR lower(NEW.valid) IS DISTINCT FROM lower(OLD.valid) OR isempty(NEW.valid) THEN
      RAISE EXCEPTION 'minimum % only ends', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_card()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF NOT EXISTS (SELECT FROM billing_ratecard c
                    WHERE c.id = NEW.rate_card_id AND c.tenant_id IS NOT DISTINCT FROM NEW.tenant_id) THEN
      RAISE EXCEPTION 'a price is of whom its card is' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_draw()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id
      AND i.status = 'draft' AND NEW.minor <= i.total FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a draw is of an invoice of its tenant that becomes final now, and of no more than it came to: %',
        NEW.invoice_id USING ERRCODE = 'restrict_violation', CONSTRAINT = 'draw_of_its_invoice';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_grant_draws()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    odd text;
  BEGIN
    SELECT d.id INTO odd FROM added d WHERE NOT EXISTS (
      SELECT FROM billing_grant g
        JOIN billing_invoice i ON i.id = d.invoice_id AND i.tenant_id = d.tenant_id AND i.status = 'draft'
        JOIN billing_invoiceline l ON l.id = d.line_id AND l.invoice_id = i.id
        LEFT JOIN tenants_project p ON p.id = l.project_id AND p.tenant_id = d.tenant_id
       WHERE g.id = d.grant_id AND (g.tenant_id, g.currency) = (d.tenant_id, i.currency)
         AND (g.project_id IS NULL OR p.path @> ARRAY[g.project_id])
         AND (g.offering_id IS NULL OR g.offering_id = l.offering_id)
         AND NOT EXISTS (SELECT FROM billing_grantlapse e WHERE e.grant_id = g.id)) LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'a grant pays within its scope for an invoice of its tenant that becomes final now: not %', odd
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_draw_in_scope';
    END IF;
    SELECT i.id INTO odd FROM billing_invoice i
     WHERE i.id IN (SELECT invoice_id FROM added)
       AND i.total < (SELECT sum(d.minor) FROM billing_grantdraw d WHERE d.invoice_id = i.id) LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'grants pay no more of invoice % than it comes to', odd
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_draws_within_invoice';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_grant_returns()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    odd text;
  BEGIN
    SELECT r.id INTO odd FROM added r
      LEFT JOIN billing_creditnote n ON n.id = r.credit_note_id AND n.tenant_id = r.tenant_id
     WHERE n.id IS NULL
        OR r.lapsed IS DISTINCT FROM EXISTS (SELECT FROM billing_grantlapse e WHERE e.grant_id = r.grant_id)
        OR (SELECT sum(a.minor) FROM billing_grantreturn a JOIN billing_creditnote m ON m.id = a.credit_note_id
             WHERE a.grant_id = r.grant_id AND m.invoice_id = n.invoice_id)
           > (SELECT coalesce(sum(d.minor), 0) FROM billing_grantdraw d
               WHERE d.grant_id = r.grant_id AND d.invoice_id = n.invoice_id)
        OR (SELECT sum(a.minor) FROM billing_grantreturn a WHERE a.credit_note_id = n.id) > n.to_grants LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'no more goes back to a grant than it paid: %', odd
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_returned_what_it_paid';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_lapse()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    PERFORM FROM billing_grant g WHERE g.id = NEW.grant_id AND g.tenant_id = NEW.tenant_id AND g.expires_at <= NEW.at;
    IF NOT FOUND OR NEW.minor <> coalesce((
         SELECT b.minor FROM billing_accountbalance b JOIN billing_ledgeraccount a ON a.id = b.account_id
          WHERE a.type = 'wallet_promo' AND a.ref = NEW.grant_id AND a.tenant_id = NEW.tenant_id), 0) THEN
      RAISE EXCEPTION 'a grant lapses after its end, with all that is left of it: %', NEW.grant_id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'grant_lapses_whole';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_note()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF ROW(NEW.total::numeric, NEW.tax::numeric) IS DISTINCT FROM (
         SELECT ROW(sum(c.minor + c.tax_minor), sum(c.tax_minor)) FROM billing_creditnoteline c WHERE c.credit_note_id = NEW.id) THEN
      RAISE EXCEPTION 'credit note % is not the sum of its lines', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_note_is_its_lines';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_paper()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    PERFORM FROM billing_invoice i
      WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id AND i.finalized_at IS NOT NULL
    UNION ALL
    SELECT FROM billing_creditnote n WHERE n.id = NEW.credit_note_id AND n.tenant_id = NEW.tenant_id;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a paper is kept of a final invoice, or of a credit note, of its tenant'
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'paper_of_its_tenant';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_parts()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    due bigint;
  BEGIN
    SELECT CASE i.status WHEN 'finalized' THEN i.total - i.settled ELSE 0 END INTO due FROM billing_invoice i
     WHERE i.id = NEW.invoice_id AND i.tenant_id = NEW.tenant_id AND i.status IN ('finalized', 'paid')
       FOR NO KEY UPDATE;
    IF NOT FOUND OR NEW.off_due <> least(NEW.total, due) THEN
      RAISE EXCEPTION 'credit note % lowers what is due on its final invoice % first', NEW.id, NEW.invoice_id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_lowers_what_is_due';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_payment()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    PERFORM FROM billing_invoice i WHERE i.id = NEW.invoice_id AND i.status = 'finalized'
      AND (i.tenant_id, i.total - i.settled, i.currency) = (NEW.tenant_id, NEW.minor, NEW.currency) FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a payment is of all that is due on a final invoice that is not paid, here %', NEW.invoice_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a payment begins as pending' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_quote()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF NOT EXISTS (SELECT FROM billing_priceversion v WHERE v.id = NEW.price_version_id AND v.valid @> NEW.made_at
                     AND (v.offering_id, v.currency, v.nano_per_hour)
                       = (NEW.offering_id, NEW.currency, NEW.nano_per_hour)) THEN
      RAISE EXCEPTION 'quote % names a price that nobody published', NEW.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_return_sum()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF NEW.to_grants <> coalesce((
         SELECT sum(r.minor) FROM billing_grantreturn r WHERE r.credit_note_id = NEW.id), 0) THEN
      RAISE EXCEPTION 'what credit note % gives back to grants is what grants got', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_to_grants_is_told';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_odd_tax()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    lines record;
    taxes bigint;
  BEGIN
    SELECT coalesce(sum(l.minor), 0) AS net, coalesce(sum(l.tax_minor), 0) AS tax INTO lines
      FROM billing_invoiceline l WHERE l.invoice_id = NEW.id;
    SELECT coalesce(sum(t.tax), 0) INTO taxes FROM billing_invoicetax t WHERE t.invoice_id = NEW.id;
    IF (NEW.tax, NEW.tax) <> (lines.tax, taxes) OR NEW.tax <> 0 AND NEW.total <> lines.net + NEW.tax
       OR NEW.treatment IN ('domestic', 'destination') AND EXISTS (
            SELECT FROM billing_invoicetax t WHERE t.invoice_id = NEW.id AND t.rate_bp IS NULL AND t.net <> 0) THEN
      RAISE EXCEPTION 'the tax of invoice % is not that of its lines', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_of_its_lines';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_other_currency()
   RETURNS trigger
   LANGUAGE plpgsql
   SECURITY DEFINER
   SET search_path TO 'pg_catalog', 'public'
  AS $function$
  DECLARE
    entered text := coalesce(current_setting('app.tenant', true), '');
    counted boolean;
  BEGIN
    LOCK TABLE billing_ratedcharge IN SHARE ROW EXCLUSIVE MODE;
    PERFORM set_config('app.tenant', OLD.id, true);
    counted := EXISTS (SELECT FROM billing_ratedcharge WHERE tenant_id = OLD.id)
      OR EXISTS (SELECT FROM broker_transition WHERE tenant_id = OLD.id AND before = 'active')
      OR EXISTS (SELECT FROM broker_lease WHERE tenant_id = OLD.id AND state <> 'released')
      OR EXISTS (SELECT FROM billing_minimum WHERE tenant_id = OLD.id)
      OR EXISTS (SELECT FROM billing_commitment WHERE tenant_id = OLD.id)
      OR EXISTS (SELECT FROM billing_discount WHERE tenant_id = OLD.id AND currency <> '');
    PERFORM set_config('app.tenant', entered, true);
    IF counted THEN
      RAISE EXCEPTION 'tenant % is charged in % and stays with it', OLD.id, OLD.currency
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenant_currency_stays';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_overcredit()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    invoice text;
  BEGIN
    SELECT i.id INTO invoice
      FROM billing_creditnote n
      JOIN billing_invoiceline l ON l.id = NEW.line_id AND l.invoice_id = n.invoice_id
      JOIN billing_invoice i ON i.id = n.invoice_id AND i.status IN ('finalized', 'paid') AND i.currency = n.currency
     WHERE n.id = NEW.credit_note_id AND (n.tenant_id, l.tenant_id, i.tenant_id)
           = (NEW.tenant_id, NEW.tenant_id, NEW.tenant_id)
       FOR NO KEY UPDATE OF i;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'credit note % is of lines of its own, final invoice', NEW.credit_note_id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credit_of_its_invoice';
    END IF;
    IF (SELECT sum(c.minor) FROM billing_creditnoteline c WHERE c.line_id = NEW.line_id)
       > (SELECT l.minor FROM billing_invoiceline l WHERE l.id = NEW.line_id) THEN
      RAISE EXCEPTION 'more is credited of line % of % than it came to', NEW.line_id, invoice
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'credited_at_most_once';
    END IF;
    IF EXISTS (
         SELECT FROM billing_invoiceline l,
                LATERAL (SELECT sum(c.minor)::numeric AS minor, sum(c.tax_minor) AS tax
                           FROM billing_creditnoteline c WHERE c.line_id = l.id) given
          WHERE l.id = NEW.line_id
            AND given.tax <> div(2 * l.tax_minor * given.minor + l.minor, 2 * l.minor)) THEN
      RAISE EXCEPTION 'what is credited of the tax on line % of % is not its part of it', NEW.line_id, invoice
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_goes_with_its_line';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_payment_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR OLD.status NOT IN ('pending', 'stuck') OR
       (NEW.id, NEW.tenant_id, NEW.invoice_id, NEW.minor, NEW.currency, NEW.gateway, NEW.automatic, NEW.opened_at)
         IS DISTINCT FROM
       (OLD.id, OLD.tenant_id, OLD.invoice_id, OLD.minor, OLD.currency, OLD.gateway, OLD.automatic, OLD.opened_at)
    THEN
      RAISE EXCEPTION 'payment % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_price_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR (NEW.rate_card_id, NEW.offering_id, NEW.currency, NEW.nano_per_hour, lower(NEW.valid),
                            NEW.free_start_s, NEW.model, NEW.tier_from_s, NEW.tier_nano)
         IS DISTINCT FROM (OLD.rate_card_id, OLD.offering_id, OLD.currency, OLD.nano_per_hour, lower(OLD.valid),
                           OLD.free_start_s, OLD.model, OLD.tier_from_s, OLD.tier_nano)
       OR coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity')
       OR isempty(NEW.valid) THEN
      RAISE EXCEPTION 'a price version is never changed, only closed: add the next one'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_refund_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE took bigint; back bigint;
  BEGIN
    IF TG_OP = 'INSERT' THEN
      IF NEW.status <> 'pending' THEN
        RAISE EXCEPTION 'a refund begins as pending' USING ERRCODE = 'restrict_violation';
      END IF;
      SELECT p.minor INTO took FROM billing_payment p
       WHERE p.id = NEW.payment_id AND p.status = 'succeeded'
         AND (p.tenant_id, p.currency, p.gateway) = (NEW.tenant_id, NEW.currency, NEW.gateway) FOR UPDATE;
      SELECT sum(r.minor) INTO back FROM billing_refund r
       WHERE r.payment_id = NEW.payment_id AND r.status <> 'declined' AND r.returned_at IS NULL;
      IF took IS NULL OR back > took THEN
        RAISE EXCEPTION 'of payment % no more than it took goes back', NEW.payment_id USING ERRCODE = 'restrict_violation';
      END IF;
    ELSIF TG_OP = 'DELETE'
       OR (NEW.id, NEW.tenant_id, NEW.payment_id, NEW.minor, NEW.currency, NEW.gateway, NEW.opened_at, NEW.opened_by, NEW.why)
            IS DISTINCT FROM
          (OLD.id, OLD.tenant_id, OLD.payment_id, OLD.minor, OLD.currency, OLD.gateway, OLD.opened_at, OLD.opened_by, OLD.why)
       OR OLD.status = 'declined' OR OLD.returned_at IS NOT NULL
       OR OLD.status = 'succeeded' AND (NEW.returned_at IS NULL OR (NEW.status, NEW.reference, NEW.settled_at)
            IS DISTINCT FROM (OLD.status, OLD.reference, OLD.settled_at)) THEN
      RAISE EXCEPTION 'refund % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_spans_of_closed_months()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    month record;
    changed tstzrange := NEW.valid;
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF coalesce(upper(NEW.valid), 'infinity') > coalesce(upper(OLD.valid), 'infinity') THEN
        RAISE EXCEPTION '% % only ends', replace(TG_TABLE_NAME, 'billing_', ''), OLD.id
          USING ERRCODE = 'restrict_violation';
      END IF;
      changed := tstzrange(upper(NEW.valid), upper(OLD.valid));
    END IF;
    FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                  WHERE p.tenant_id = NEW.tenant_id AND p.span && changed ORDER BY p.span FOR SHARE LOOP
      IF month.status = 'closed' THEN
        RAISE EXCEPTION 'month % is closed, and stays as it was agreed', month.label
          USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
      END IF;
    END LOOP;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_stripe_charge_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF OLD.outcome <> 'open' OR (NEW.id, NEW.tenant_id, NEW.minor, NEW.currency, NEW.sent_minor, NEW.customer_id, NEW.card_id)
         IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.minor, OLD.currency, OLD.sent_minor, OLD.customer_id, OLD.card_id)
    THEN
      RAISE EXCEPTION 'charge % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_stripe_command_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF OLD.state = 'done'
       OR (NEW.id, NEW.tenant_id, NEW.subject, NEW.step, NEW.round, NEW.params)
         IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.subject, OLD.step, OLD.round, OLD.params)
       OR NEW.attempt NOT IN (OLD.attempt, OLD.attempt + 1) OR (NEW.idem <> OLD.idem) <> (NEW.attempt > OLD.attempt)
    THEN
      RAISE EXCEPTION 'command % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_tax_rate_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'DELETE' OR (NEW.id, NEW.jurisdiction, NEW.category, lower(NEW.valid))
         IS DISTINCT FROM (OLD.id, OLD.jurisdiction, OLD.category, lower(OLD.valid))
       OR OLD.used AND (NEW.rate_bp, NEW.used) IS DISTINCT FROM (OLD.rate_bp, OLD.used) THEN
      RAISE EXCEPTION 'a rate of tax is never changed, only closed: add the next one'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_terms_of_closed_months()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    month record;
    since text;
    until text;
  BEGIN
    IF TG_OP = 'INSERT' THEN
      since := NEW.first_month;
      until := coalesce(NEW.last_month, 'for good');
    ELSE
      since := greatest(NEW.first_month, to_char(to_date(NEW.last_month, 'YYYY-MM') + interval '1 month', 'YYYY-MM'));
      until := coalesce(OLD.last_month, 'for good');
    END IF;
    FOR month IN SELECT p.label, p.status FROM billing_billingperiod p
                  WHERE p.tenant_id = NEW.tenant_id AND p.label >= since AND p.label <= until ORDER BY p.span FOR SHARE LOOP
      IF month.status = 'closed' THEN
        RAISE EXCEPTION 'month % is closed, and stays as discounts were', month.label
          USING ERRCODE = 'restrict_violation', CONSTRAINT = 'closed_months_keep_terms';
      END IF;
    END LOOP;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_terms_of_other_currency()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    billed text;
  BEGIN
    SELECT t.currency INTO billed FROM tenants_tenant t WHERE t.id = NEW.tenant_id FOR SHARE;
    IF FOUND AND NEW.currency NOT IN ('', billed) THEN
      RAISE EXCEPTION 'tenant % is billed in %, not in %', NEW.tenant_id, billed, NEW.currency
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'terms_in_tenants_currency';
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_topup_change()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      IF NEW.status <> 'pending' THEN
        RAISE EXCEPTION 'a top-up begins as pending' USING ERRCODE = 'restrict_violation';
      END IF;
    ELSIF TG_OP = 'DELETE' OR OLD.status IN ('succeeded', 'declined') OR
       (NEW.id, NEW.tenant_id, NEW.minor, NEW.currency, NEW.gateway, NEW.window, NEW.opened_at)
         IS DISTINCT FROM
       (OLD.id, OLD.tenant_id, OLD.minor, OLD.currency, OLD.gateway, OLD.window, OLD.opened_at) THEN
      RAISE EXCEPTION 'top-up % stays what it is', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_undecided_tax()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  BEGIN
    IF (NEW.supplier IS NULL) <> (NEW.treatment = '')
       OR NEW.customer IS NULL AND (EXISTS (SELECT FROM billing_billingdetails d WHERE d.tenant_id = NEW.tenant_id)
                                    OR EXISTS (SELECT FROM billing_taxrate)) THEN
      RAISE EXCEPTION 'nobody has decided how invoice % is taxed', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_decided';
    END IF;
    IF EXISTS (SELECT FROM billing_invoicetax t JOIN billing_taxrate r ON r.id = t.rate_id
                WHERE t.invoice_id = NEW.id AND t.rate_bp IS DISTINCT FROM r.rate_bp) THEN
      RAISE EXCEPTION 'a rate of tax was corrected since invoice % was made', NEW.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tax_is_at_its_rate';
    END IF;
    UPDATE billing_taxrate r SET used = true
     WHERE NOT r.used AND r.id IN (SELECT t.rate_id FROM billing_invoicetax t WHERE t.invoice_id = NEW.id);
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE FUNCTION refuse_unpaid()
   RETURNS trigger
   LANGUAGE plpgsql
  AS $function$
  DECLARE
    held text;
  BEGIN
    IF OLD.status = 'paid' OR NEW.status = 'paid' AND (OLD.status <> 'finalized' OR NEW.total - NEW.settled <> 0 AND NOT EXISTS (
         SELECT FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status = 'succeeded')) THEN
      RAISE EXCEPTION 'invoice % is paid by a payment of all that is due on it, once', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.settled < OLD.settled OR OLD.settled > 0 AND NEW.status = 'void' THEN
      RAISE EXCEPTION 'what was given back or drawn of invoice % stays so', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.settled <> coalesce((SELECT sum(n.off_due) FROM billing_creditnote n WHERE n.invoice_id = OLD.id), 0)
                      + coalesce((SELECT d.minor FROM billing_balancedraw d WHERE d.invoice_id = OLD.id), 0)
                      + coalesce((SELECT sum(g.minor) FROM billing_grantdraw g WHERE g.invoice_id = OLD.id), 0) THEN
      RAISE EXCEPTION 'what is settled of invoice % is what was given back and drawn', OLD.id
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'settled_is_told';
    END IF;
    IF OLD.status = 'finalized' AND (NEW.status NOT IN ('finalized', 'paid') OR NEW.settled <> OLD.settled) THEN
      SELECT p.id INTO held FROM billing_payment p WHERE p.invoice_id = OLD.id AND p.status <> 'declined';
      IF FOUND THEN
        RAISE EXCEPTION 'invoice % does not become % while its payment % may have taken the money', OLD.id, NEW.status, held
          USING ERRCODE = 'restrict_violation', HINT = 'Wait until the payment is settled; then change the invoice.';
      END IF;
    END IF;
    RETURN NEW;
  END $function$
  ;
CREATE OR REPLACE VIEW billing_tenantprice AS
   WITH own AS (
           SELECT billing_priceversion.tenant_id,
              billing_priceversion.rate_card_id,
              billing_priceversion.offering_id,
              billing_priceversion.currency,
              range_agg(billing_priceversion.valid) AS span
             FROM billing_priceversion
            WHERE (billing_priceversion.tenant_id IS NOT NULL)
            GROUP BY billing_priceversion.tenant_id, billing_priceversion.rate_card_id, billing_priceversion.offering_id, billing_priceversion.currency
          )
   SELECT v.tenant_id,
      v.rate_card_id AS card_id,
      v.id AS version_id,
      v.offering_id,
      v.currency,
      v.nano_per_hour,
      v.valid,
      (0)::smallint AS part
     FROM billing_priceversion v
    WHERE (v.tenant_id IS NOT NULL)
  UNION ALL
   SELECT tenant_id,
      rate_card_id AS card_id,
      v.id AS version_id,
      v.offering_id,
      v.currency,
      v.nano_per_hour,
      rest.valid,
      ((rest.n - 1))::smallint AS part
     FROM ((own
       JOIN billing_priceversion v ON (((v.tenant_id IS NULL) AND ((v.offering_id)::text = (offering_id)::text) AND ((v.currency)::text = (currency)::text))))
       CROSS JOIN LATERAL unnest((tstzmultirange(v.valid) - span)) WITH ORDINALITY rest(valid, n))
  UNION ALL
   SELECT t.id AS tenant_id,
      NULL::bigint AS card_id,
      v.id AS version_id,
      v.offering_id,
      v.currency,
      v.nano_per_hour,
      v.valid,
      (0)::smallint AS part
     FROM (tenants_tenant t
       JOIN billing_priceversion v ON (((v.tenant_id IS NULL) AND ((v.currency)::text = (t.currency)::text))))
    WHERE (NOT (EXISTS ( SELECT
             FROM own
            WHERE (((tenant_id)::text = (t.id)::text) AND ((offering_id)::text = (v.offering_id)::text) AND ((currency)::text = (v.currency)::text)))));
CREATE OR REPLACE VIEW broker_occupied AS
   SELECT gpu_id,
      lower(placement) AS start,
      (upper(placement) - lower(placement)) AS size,
      profile,
      isolation,
      COALESCE(((tenant_id)::text = current_setting('app.tenant'::text, true)), false) AS mine
     FROM broker_allocation
    WHERE (released_at IS NULL);
CREATE OR REPLACE VIEW broker_placechange AS
   SELECT gpu_id,
      xid
     FROM broker_allocation;
CREATE OR REPLACE VIEW broker_vacated AS
   SELECT gpu_id,
      lower(placement) AS start,
      profile,
      isolation,
      held_at,
      released_at,
      upper(placement) AS stop
     FROM broker_allocation
    WHERE (released_at IS NOT NULL);
CREATE OR REPLACE VIEW broker_waiting AS
   SELECT id AS lease_id,
      offering_id,
      quantity,
      COALESCE(waits_since, created_at) AS created_at,
      COALESCE(((tenant_id)::text = current_setting('app.tenant'::text, true)), false) AS mine
     FROM broker_lease
    WHERE ((state)::text = 'queued'::text);
CREATE POLICY operators_add ON tenants_auditevent AS PERMISSIVE FOR INSERT TO public WITH CHECK ((tenant_id)::text = ''::text);
CREATE POLICY platform ON billing_ledgeraccount AS PERMISSIVE FOR SELECT TO public USING (tenant_id IS NULL);
CREATE POLICY posting ON billing_accountbalance AS PERMISSIVE FOR ALL TO gpubroker_owner USING (current_setting('app.ledger'::text, true) = 'posting'::text) WITH CHECK (current_setting('app.ledger'::text, true) = 'posting'::text);
CREATE POLICY posting ON billing_ledgeraccount AS PERMISSIVE FOR ALL TO gpubroker_owner USING (current_setting('app.ledger'::text, true) = 'posting'::text) WITH CHECK (current_setting('app.ledger'::text, true) = 'posting'::text);
CREATE POLICY posting ON billing_ledgertransfer AS PERMISSIVE FOR SELECT TO gpubroker_owner USING (current_setting('app.ledger'::text, true) = 'posting'::text);
CREATE POLICY rating ON billing_ratedcharge AS PERMISSIVE FOR INSERT TO gpubroker_sweep WITH CHECK true;
CREATE POLICY rating ON billing_ratingmark AS PERMISSIVE FOR ALL TO gpubroker_sweep USING true WITH CHECK true;
CREATE POLICY readers ON billing_accountbalance AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_autotopup AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_balancedraw AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_billingdetails AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_billingperiod AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_budget AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_budgetalert AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_budgetmonth AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_budgetstop AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_cardform AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_commitment AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_correctionpart AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_correctionshare AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_creditnote AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_creditnoteline AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_discount AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_dispute AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_disputestep AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_dunningstep AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_grant AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_grantdraw AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_grantlapse AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_grantreturn AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_hold AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_holdpart AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_invoice AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_invoiceline AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_invoicetax AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_keptpaper AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ledgeraccount AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ledgerseal AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ledgertransfer AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_letter AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_minimum AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_monthcharge AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_payment AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_paymentdispute AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_paymentrefund AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_priceversion AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_quote AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ratecard AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ratedcharge AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_ratingmark AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_refund AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_stripecharge AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_stripecommand AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_stripecustomer AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_tenantterms AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_tokencap AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_tokenday AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_tokenlease AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_tokenpart AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_topup AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_wallet AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON billing_walletpart AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_allocation AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_lease AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_move AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_transition AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_volume AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON broker_volumestep AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_apitoken AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_auditevent AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_invitation AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_member AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_project AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_quota AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_serviceaccount AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_storedanswer AS PERMISSIVE FOR SELECT TO gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY readers ON tenants_tenant AS PERMISSIVE FOR SELECT TO gpubroker_door, gpubroker_staff, gpubroker_sweep USING true;
CREATE POLICY shard ON billing_billingperiod AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_invoice AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_invoiceline AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_invoicetax AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_ledgeraccount AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_ledgertransfer AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON billing_letter AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY shard ON tenants_auditevent AS PERMISSIVE FOR ALL TO gpubroker_sweep USING ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest)) WITH CHECK ((tenant_id)::text IN ( SELECT unnest(string_to_array(current_setting('app.tenants'::text, true), ','::text)) AS unnest));
CREATE POLICY tenant_wall ON billing_accountbalance AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_autotopup AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_balancedraw AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_billingdetails AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_billingperiod AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_budget AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_budgetalert AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_budgetmonth AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_budgetstop AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_cardform AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_commitment AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_correctionpart AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_correctionshare AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_creditnote AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_creditnoteline AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_discount AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_dispute AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_disputestep AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_dunningstep AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_grant AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_grantdraw AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_grantlapse AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_grantreturn AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_hold AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_holdpart AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_invoice AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_invoiceline AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_invoicetax AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_keptpaper AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_ledgeraccount AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_ledgerseal AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_ledgertransfer AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_letter AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_minimum AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_monthcharge AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_payment AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_paymentdispute AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_paymentrefund AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_priceversion AS PERMISSIVE FOR ALL TO public USING ((tenant_id IS NULL) OR ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"))) WITH CHECK ((tenant_id IS NULL) OR ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")));
CREATE POLICY tenant_wall ON billing_quote AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_ratecard AS PERMISSIVE FOR ALL TO public USING ((tenant_id IS NULL) OR ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"))) WITH CHECK ((tenant_id IS NULL) OR ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")));
CREATE POLICY tenant_wall ON billing_ratedcharge AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_ratingmark AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_refund AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_stripecharge AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_stripecommand AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_stripecustomer AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_tenantterms AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_tokencap AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_tokenday AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_tokenlease AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_tokenpart AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_topup AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_wallet AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON billing_walletpart AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_allocation AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_lease AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_move AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_transition AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_volume AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON broker_volumestep AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_apitoken AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_auditevent AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_invitation AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_member AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_project AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_quota AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_serviceaccount AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_storedanswer AS PERMISSIVE FOR ALL TO public USING ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((tenant_id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE POLICY tenant_wall ON tenants_tenant AS PERMISSIVE FOR ALL TO public USING ((id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif")) WITH CHECK ((id)::text = ( SELECT NULLIF(current_setting('app.tenant'::text, true), ''::text) AS "nullif"));
CREATE ROLE gpubroker_door INHERIT;
CREATE ROLE gpubroker_owner LOGIN;
CREATE ROLE gpubroker_staff INHERIT;
CREATE ROLE gpubroker_sweep INHERIT;
CREATE ROLE gpubroker_web LOGIN;
CREATE ROLE gpubroker_worker LOGIN;
CREATE SCHEMA public;
CREATE SEQUENCE account_emailaddress_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE account_emailconfirmation_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE auth_group_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE auth_group_permissions_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE auth_permission_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_autotopup_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_billingperiod_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_billingrun_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_budgetmonth_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_correctionpart_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_correctionshare_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_creditnoteline_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_disputestep_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_dunningstep_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_holdpart_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_invoiceline_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_invoicetax_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_keptpaper_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_ledgeraccount_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_ledgerseal_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_ledgertransfer_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_priceversion_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_ratecard_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripecommand_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripecustomer_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripeday_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripedifference_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripepace_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_stripeseen_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_tenantterms_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_tokenday_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_tokenlease_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_tokenpart_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_wallet_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE billing_walletpart_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_clusterobject_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_clusterwatch_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_inventorychange_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_layoutstep_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_moveentry_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_orphan_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE broker_transition_position OWNER gpubroker_owner;
CREATE SEQUENCE django_content_type_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE django_migrations_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE mfa_authenticator_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE ports_ring_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE socialaccount_socialaccount_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE socialaccount_socialapp_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE socialaccount_socialtoken_id_seq OWNER gpubroker_owner;
CREATE SEQUENCE tenants_storedanswer_id_seq OWNER gpubroker_owner;
CREATE TABLE account_emailaddress OWNER gpubroker_owner;
CREATE TABLE account_emailconfirmation OWNER gpubroker_owner;
CREATE TABLE auth_group OWNER gpubroker_owner;
CREATE TABLE auth_group_permissions OWNER gpubroker_owner;
CREATE TABLE auth_permission OWNER gpubroker_owner;
CREATE TABLE billing_accountbalance OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_autotopup OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_balancedraw OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_billingdetails OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_billingperiod OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_billingrun OWNER gpubroker_owner;
CREATE TABLE billing_budget OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_budgetalert OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_budgetmonth OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_budgetstop OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_campaign OWNER gpubroker_owner;
CREATE TABLE billing_cardform OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_commitment OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_correction OWNER gpubroker_owner;
CREATE TABLE billing_correctionpart OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_correctionshare OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_creditnote OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_creditnoteline OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_discount OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_dispute OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_disputestep OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_dunningstep OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_grant OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_grantdraw OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_grantlapse OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_grantreturn OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_hold OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_holdpart OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_invoice OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_invoiceline OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_invoiceseries OWNER gpubroker_owner;
CREATE TABLE billing_invoicetax OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_keptpaper OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ledgeraccount OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ledgerseal OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ledgertransfer OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_letter OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_minimum OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_monthcharge OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_payment OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_paymentdispute OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_paymentrefund OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_priceversion OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_quote OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ratecard OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ratedcharge OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_ratingmark OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_refund OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_simulatedcharge OWNER gpubroker_owner;
CREATE TABLE billing_simulatedpayer OWNER gpubroker_owner;
CREATE TABLE billing_simulatedrefund OWNER gpubroker_owner;
CREATE TABLE billing_stripecharge OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_stripecommand OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_stripecustomer OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_stripeday OWNER gpubroker_owner;
CREATE TABLE billing_stripedifference OWNER gpubroker_owner;
CREATE TABLE billing_stripeevent OWNER gpubroker_owner;
CREATE TABLE billing_stripepace OWNER gpubroker_owner;
CREATE TABLE billing_stripeseen OWNER gpubroker_owner;
CREATE TABLE billing_taxedas OWNER gpubroker_owner;
CREATE TABLE billing_taxrate OWNER gpubroker_owner;
CREATE TABLE billing_tenantterms OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_tokencap OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_tokenday OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_tokenlease OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_tokenpart OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_topup OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_wallet OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE billing_walletpart OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_allocation OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_cluster OWNER gpubroker_owner;
CREATE TABLE broker_clustercredential OWNER gpubroker_owner;
CREATE TABLE broker_clusterobject OWNER gpubroker_owner;
CREATE TABLE broker_clusterwatch OWNER gpubroker_owner;
CREATE TABLE broker_examination OWNER gpubroker_owner;
CREATE TABLE broker_gpu OWNER gpubroker_owner;
CREATE TABLE broker_gpumodel OWNER gpubroker_owner;
CREATE TABLE broker_installation OWNER gpubroker_owner;
CREATE TABLE broker_inventorychange OWNER gpubroker_owner;
CREATE TABLE broker_layoutchange OWNER gpubroker_owner;
CREATE TABLE broker_layoutstep OWNER gpubroker_owner;
CREATE TABLE broker_lease OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_move OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_moveentry OWNER gpubroker_owner;
CREATE TABLE broker_moveplan OWNER gpubroker_owner;
CREATE TABLE broker_node OWNER gpubroker_owner;
CREATE TABLE broker_offering OWNER gpubroker_owner;
CREATE TABLE broker_orphan OWNER gpubroker_owner;
CREATE TABLE broker_simulatednode OWNER gpubroker_owner;
CREATE TABLE broker_simulatedpod OWNER gpubroker_owner;
CREATE TABLE broker_simulatedvolume OWNER gpubroker_owner;
CREATE TABLE broker_transition OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_volume OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE broker_volumestep OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE django_content_type OWNER gpubroker_owner;
CREATE TABLE django_migrations OWNER gpubroker_owner;
CREATE TABLE django_session OWNER gpubroker_owner;
CREATE TABLE mfa_authenticator OWNER gpubroker_owner;
CREATE TABLE ports_ring OWNER gpubroker_owner;
CREATE TABLE socialaccount_socialaccount OWNER gpubroker_owner;
CREATE TABLE socialaccount_socialapp OWNER gpubroker_owner;
CREATE TABLE socialaccount_socialtoken OWNER gpubroker_owner;
CREATE TABLE tenants_apitoken OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_auditevent OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_invitation OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_member OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_project OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_quota OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_serviceaccount OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_storedanswer OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_tenant OWNER gpubroker_owner ENABLE ROW LEVEL SECURITY FORCE ROW LEVEL SECURITY;
CREATE TABLE tenants_user OWNER gpubroker_owner;
CREATE TRIGGER agreed_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW WHEN ((((old.status)::text <> ALL ((ARRAY['draft'::character varying, 'closing'::character varying])::text[])) AND (new.agreed IS DISTINCT FROM old.agreed))) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_balancedraw FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_correctionpart FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_creditnote FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_creditnoteline FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_disputestep FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_dunningstep FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_grant FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_grantdraw FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_grantlapse FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_grantreturn FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_keptpaper FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_ledgeraccount FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_ledgerseal FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_ledgertransfer FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_monthcharge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_quote FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON billing_ratedcharge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON broker_inventorychange FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON broker_layoutstep FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON broker_moveentry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON broker_transition FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON broker_volumestep FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON tenants_auditevent FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_balancedraw FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_correctionpart FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_creditnote FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_creditnoteline FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_disputestep FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_dunningstep FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_grant FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_grantdraw FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_grantlapse FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_grantreturn FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_keptpaper FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_ledgeraccount FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_ledgerseal FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_ledgertransfer FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_monthcharge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_quote FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_ratedcharge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON broker_inventorychange FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON broker_layoutstep FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON broker_moveentry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON broker_transition FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON broker_volumestep FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON tenants_auditevent FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER campaign_is_kept BEFORE DELETE OR UPDATE ON billing_campaign FOR EACH ROW EXECUTE FUNCTION refuse_campaign_change();
CREATE TRIGGER changed BEFORE UPDATE ON broker_allocation FOR EACH ROW WHEN (((((((old.gpu_id)::text IS DISTINCT FROM (new.gpu_id)::text) OR (old.placement IS DISTINCT FROM new.placement)) OR ((old.profile)::text IS DISTINCT FROM (new.profile)::text)) OR ((old.isolation)::text IS DISTINCT FROM (new.isolation)::text)) OR (old.released_at IS DISTINCT FROM new.released_at))) EXECUTE FUNCTION note_change();
CREATE TRIGGER changed BEFORE UPDATE ON broker_cluster FOR EACH ROW WHEN (((((((((old.name)::text IS DISTINCT FROM (new.name)::text) OR ((old.region)::text IS DISTINCT FROM (new.region)::text)) OR ((old.driver)::text IS DISTINCT FROM (new.driver)::text)) OR (old.silent_since IS DISTINCT FROM new.silent_since)) OR ((old.frozen)::text IS DISTINCT FROM (new.frozen)::text)) OR (old.shares_soft_cards IS DISTINCT FROM new.shares_soft_cards)) OR (old.recuts IS DISTINCT FROM new.recuts))) EXECUTE FUNCTION note_change();
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW WHEN ((((((((((old.node_id)::text IS DISTINCT FROM (new.node_id)::text) OR (old.index IS DISTINCT FROM new.index)) OR ((old.gpu_model_id)::text IS DISTINCT FROM (new.gpu_model_id)::text)) OR ((old.layout_policy)::text IS DISTINCT FROM (new.layout_policy)::text)) OR (old.fixed_layout IS DISTINCT FROM new.fixed_layout)) OR ((old.health)::text IS DISTINCT FROM (new.health)::text)) OR (old.closed_since IS DISTINCT FROM new.closed_since)) OR (old.xid IS DISTINCT FROM new.xid))) EXECUTE FUNCTION note_change();
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW WHEN ((((((old.cluster_id)::text IS DISTINCT FROM (new.cluster_id)::text) OR ((old.name)::text IS DISTINCT FROM (new.name)::text)) OR ((old.state)::text IS DISTINCT FROM (new.state)::text)) OR (old.xid IS DISTINCT FROM new.xid))) EXECUTE FUNCTION note_change();
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_commitment FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_discount FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_closed_months();
CREATE TRIGGER closed_months_stay BEFORE INSERT ON billing_minimum FOR EACH ROW EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_commitment FOR EACH ROW WHEN ((new.valid IS DISTINCT FROM old.valid)) EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_discount FOR EACH ROW WHEN (((new.last_month)::text IS DISTINCT FROM (old.last_month)::text)) EXECUTE FUNCTION refuse_terms_of_closed_months();
CREATE TRIGGER closed_months_stay_so BEFORE UPDATE ON billing_minimum FOR EACH ROW WHEN ((new.valid IS DISTINCT FROM old.valid)) EXECUTE FUNCTION refuse_spans_of_closed_months();
CREATE TRIGGER commitment_is_kept BEFORE INSERT OR DELETE OR UPDATE ON billing_commitment FOR EACH ROW EXECUTE FUNCTION refuse_commitment_change();
CREATE TRIGGER correction_stays BEFORE DELETE ON billing_correction FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER counted AFTER INSERT OR UPDATE ON billing_tokenpart FOR EACH ROW EXECUTE FUNCTION count_token_part();
CREATE TRIGGER counted_in AFTER INSERT ON billing_holdpart REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_parts_in();
CREATE TRIGGER counted_in AFTER INSERT ON billing_walletpart REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_in();
CREATE TRIGGER counted_out AFTER DELETE ON billing_holdpart REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_parts_out();
CREATE TRIGGER counted_out AFTER DELETE ON billing_walletpart REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_out();
CREATE TRIGGER counted_over AFTER UPDATE ON billing_holdpart REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_parts_over();
CREATE TRIGGER counted_over AFTER UPDATE ON billing_walletpart REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_wallet_over();
CREATE TRIGGER currency_stays BEFORE UPDATE ON tenants_tenant FOR EACH ROW WHEN (((old.currency)::text IS DISTINCT FROM (new.currency)::text)) EXECUTE FUNCTION refuse_other_currency();
CREATE TRIGGER diff_stays BEFORE UPDATE ON billing_correctionshare FOR EACH ROW WHEN ((((old.status)::text <> 'waiting'::text) OR ((((((new.id IS DISTINCT FROM old.id) OR ((new.tenant_id)::text IS DISTINCT FROM (old.tenant_id)::text)) OR ((new.correction_id)::text IS DISTINCT FROM (old.correction_id)::text)) OR (new.diff IS DISTINCT FROM old.diff)) OR ((new.seal)::text IS DISTINCT FROM (old.seal)::text)) OR (new.minor IS DISTINCT FROM old.minor)))) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER discount_is_kept BEFORE DELETE OR UPDATE ON billing_discount FOR EACH ROW EXECUTE FUNCTION refuse_discount_change();
CREATE TRIGGER dispute_ends_once BEFORE UPDATE ON billing_dispute FOR EACH ROW WHEN ((((old.status)::text <> 'open'::text) OR (((((((((((new.id)::text IS DISTINCT FROM (old.id)::text) OR ((new.tenant_id)::text IS DISTINCT FROM (old.tenant_id)::text)) OR ((new.invoice_id)::text IS DISTINCT FROM (old.invoice_id)::text)) OR (new.line_id IS DISTINCT FROM old.line_id)) OR (new.minor IS DISTINCT FROM old.minor)) OR (new.tax_minor IS DISTINCT FROM old.tax_minor)) OR ((new.currency)::text IS DISTINCT FROM (old.currency)::text)) OR ((new.reason)::text IS DISTINCT FROM (old.reason)::text)) OR (new.opened_at IS DISTINCT FROM old.opened_at)) OR ((new.opened_by)::text IS DISTINCT FROM (old.opened_by)::text)))) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER dispute_stays BEFORE DELETE ON billing_dispute FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER final_invoice BEFORE DELETE OR UPDATE ON billing_invoice FOR EACH ROW EXECUTE FUNCTION refuse_final_invoice_change();
CREATE TRIGGER final_line_added AFTER INSERT ON billing_invoiceline REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_left AFTER UPDATE ON billing_invoiceline REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_reached AFTER UPDATE ON billing_invoiceline REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_line_removed AFTER DELETE ON billing_invoiceline REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_added AFTER INSERT ON billing_invoicetax REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_left AFTER UPDATE ON billing_invoicetax REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_reached AFTER UPDATE ON billing_invoicetax REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER final_tax_removed AFTER DELETE ON billing_invoicetax REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_final();
CREATE TRIGGER frozen_stripe_command AFTER UPDATE ON billing_stripecommand FOR EACH ROW EXECUTE FUNCTION refuse_stripe_command_change();
CREATE TRIGGER gone AFTER DELETE ON broker_allocation FOR EACH ROW EXECUTE FUNCTION note_place_gone();
CREATE TRIGGER gone AFTER DELETE ON broker_gpu FOR EACH ROW EXECUTE FUNCTION note_card_gone();
CREATE TRIGGER held_once_free AFTER INSERT ON broker_allocation FOR EACH ROW EXECUTE FUNCTION hold_once_free();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_commitment FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_discount FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER in_its_currency BEFORE INSERT ON billing_minimum FOR EACH ROW EXECUTE FUNCTION refuse_terms_of_other_currency();
CREATE TRIGGER kept_stripe_charge BEFORE TRUNCATE ON billing_stripecharge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept_stripe_command BEFORE TRUNCATE ON billing_stripecommand FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lapses_whole AFTER INSERT ON billing_grantlapse FOR EACH ROW EXECUTE FUNCTION refuse_odd_lapse();
CREATE TRIGGER lowers_what_is_due AFTER INSERT ON billing_creditnote FOR EACH ROW EXECUTE FUNCTION refuse_odd_parts();
CREATE TRIGGER minimum_is_kept BEFORE DELETE OR UPDATE ON billing_minimum FOR EACH ROW EXECUTE FUNCTION refuse_minimum_change();
CREATE TRIGGER no_more_than_its_note AFTER INSERT ON billing_creditnoteline REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_later_lines();
CREATE TRIGGER of_its_invoice AFTER INSERT ON billing_balancedraw FOR EACH ROW EXECUTE FUNCTION refuse_odd_draw();
CREATE TRIGGER of_its_own_tenant BEFORE INSERT ON billing_correctionshare FOR EACH ROW EXECUTE FUNCTION refuse_foreign_share();
CREATE TRIGGER of_its_tenant AFTER INSERT ON billing_keptpaper FOR EACH ROW EXECUTE FUNCTION refuse_odd_paper();
CREATE TRIGGER opens_balance AFTER INSERT ON billing_ledgeraccount FOR EACH ROW EXECUTE FUNCTION open_balance();
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW WHEN (((((old.status)::text IS DISTINCT FROM (new.status)::text) OR (old.paid_at IS DISTINCT FROM new.paid_at)) OR (old.settled IS DISTINCT FROM new.settled))) EXECUTE FUNCTION refuse_unpaid();
CREATE TRIGGER paid_money_only AFTER INSERT ON billing_creditnote FOR EACH ROW EXECUTE FUNCTION refuse_granted_money();
CREATE TRIGGER payment_of_an_invoice AFTER INSERT ON billing_payment FOR EACH ROW EXECUTE FUNCTION refuse_odd_payment();
CREATE TRIGGER posted AFTER INSERT ON billing_ledgertransfer REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION post_transfers();
CREATE TRIGGER price_is_immutable BEFORE DELETE OR UPDATE ON billing_priceversion FOR EACH ROW EXECUTE FUNCTION refuse_price_change();
CREATE TRIGGER price_of_a_card AFTER INSERT OR UPDATE OF tenant_id, rate_card_id ON billing_priceversion FOR EACH ROW EXECUTE FUNCTION refuse_odd_card();
CREATE TRIGGER proposal_stays BEFORE UPDATE ON billing_correction FOR EACH ROW WHEN ((((old.status)::text = ANY ((ARRAY['booked'::character varying, 'withdrawn'::character varying])::text[])) OR (((((((((((((((((new.id)::text IS DISTINCT FROM (old.id)::text) OR ((new.kind)::text IS DISTINCT FROM (old.kind)::text)) OR ((new.lease_id)::text IS DISTINCT FROM (old.lease_id)::text)) OR (new.charge IS DISTINCT FROM old.charge)) OR (new.price_version_id IS DISTINCT FROM old.price_version_id)) OR (new.nano_per_hour IS DISTINCT FROM old.nano_per_hour)) OR ((new.currency)::text IS DISTINCT FROM (old.currency)::text)) OR (new.since IS DISTINCT FROM old.since)) OR (new.until IS DISTINCT FROM old.until)) OR ((new.reason)::text IS DISTINCT FROM (old.reason)::text)) OR (new.minor IS DISTINCT FROM old.minor)) OR (new.limit_minor IS DISTINCT FROM old.limit_minor)) OR ((new.seal)::text IS DISTINCT FROM (old.seal)::text)) OR ((new.author_id)::text IS DISTINCT FROM (old.author_id)::text)) OR ((new.author)::text IS DISTINCT FROM (old.author)::text)) OR (new.proposed_at IS DISTINCT FROM old.proposed_at)) OR ((old.approver_id IS NOT NULL) AND ((new.approver_id)::text IS DISTINCT FROM (old.approver_id)::text)) OR ((old.second_approver_id IS NOT NULL) AND ((new.second_approver_id)::text IS DISTINCT FROM (old.second_approver_id)::text)))) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER quota_counts_holdings BEFORE INSERT ON tenants_quota FOR EACH ROW EXECUTE FUNCTION quota_counts_holdings();
CREATE TRIGGER quote_of_a_price AFTER INSERT ON billing_quote FOR EACH ROW EXECUTE FUNCTION refuse_odd_quote();
CREATE TRIGGER released_is_final BEFORE INSERT ON broker_transition FOR EACH ROW EXECUTE FUNCTION refuse_after_released();
CREATE TRIGGER settled_payment AFTER DELETE OR UPDATE ON billing_payment FOR EACH ROW EXECUTE FUNCTION refuse_payment_change();
CREATE TRIGGER settled_payment_truncate BEFORE TRUNCATE ON billing_payment FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settled_refund AFTER INSERT OR DELETE OR UPDATE ON billing_refund FOR EACH ROW EXECUTE FUNCTION refuse_refund_change();
CREATE TRIGGER settled_refund_truncate BEFORE TRUNCATE ON billing_refund FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settled_stripe_charge AFTER UPDATE ON billing_stripecharge FOR EACH ROW EXECUTE FUNCTION refuse_stripe_charge_change();
CREATE TRIGGER settled_topup AFTER INSERT OR DELETE OR UPDATE ON billing_topup FOR EACH ROW EXECUTE FUNCTION refuse_topup_change();
CREATE TRIGGER settled_topup_truncate BEFORE TRUNCATE ON billing_topup FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER share_stays BEFORE DELETE ON billing_correctionshare FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER stays BEFORE DELETE ON billing_accountbalance FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER stays_truncate BEFORE TRUNCATE ON billing_accountbalance FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER tax_rate_is_immutable BEFORE DELETE OR UPDATE ON billing_taxrate FOR EACH ROW EXECUTE FUNCTION refuse_tax_rate_change();
CREATE TRIGGER taxed_as_its_lines BEFORE UPDATE ON billing_invoice FOR EACH ROW WHEN ((((old.status)::text = ANY ((ARRAY['draft'::character varying, 'closing'::character varying])::text[])) AND ((new.status)::text <> ALL ((ARRAY['draft'::character varying, 'closing'::character varying])::text[])))) EXECUTE FUNCTION refuse_odd_tax();
CREATE TRIGGER taxed_decidedly BEFORE UPDATE ON billing_invoice FOR EACH ROW WHEN ((((old.status)::text = ANY ((ARRAY['draft'::character varying, 'closing'::character varying])::text[])) AND ((new.status)::text <> ALL ((ARRAY['draft'::character varying, 'closing'::character varying, 'void'::character varying])::text[])))) EXECUTE FUNCTION refuse_undecided_tax();
CREATE TRIGGER what_it_paid AFTER INSERT ON billing_grantreturn REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_odd_grant_returns();
CREATE TRIGGER window_stays BEFORE UPDATE ON billing_invoice FOR EACH ROW WHEN (((old.number IS NOT NULL) AND (new.disputable_until IS DISTINCT FROM old.disputable_until))) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER within_its_line AFTER INSERT ON billing_creditnoteline FOR EACH ROW EXECUTE FUNCTION refuse_overcredit();
CREATE TRIGGER within_scope AFTER INSERT ON billing_grantdraw REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_odd_grant_draws();
CREATE UNIQUE INDEX (generated) ON account_emailaddress USING btree (id);
CREATE UNIQUE INDEX (generated) ON account_emailaddress USING btree (user_id, email);
CREATE UNIQUE INDEX (generated) ON account_emailconfirmation USING btree (id);
CREATE UNIQUE INDEX (generated) ON account_emailconfirmation USING btree (key);
CREATE UNIQUE INDEX (generated) ON auth_group USING btree (id);
CREATE UNIQUE INDEX (generated) ON auth_group USING btree (name);
CREATE UNIQUE INDEX (generated) ON auth_group_permissions USING btree (group_id, permission_id);
CREATE UNIQUE INDEX (generated) ON auth_group_permissions USING btree (id);
CREATE UNIQUE INDEX (generated) ON auth_permission USING btree (content_type_id, codename);
CREATE UNIQUE INDEX (generated) ON auth_permission USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_accountbalance USING btree (account_id);
CREATE UNIQUE INDEX (generated) ON billing_autotopup USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_balancedraw USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_balancedraw USING btree (invoice_id);
CREATE UNIQUE INDEX (generated) ON billing_billingdetails USING btree (tenant_id);
CREATE UNIQUE INDEX (generated) ON billing_billingperiod USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_billingrun USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_billingrun USING btree (label);
CREATE UNIQUE INDEX (generated) ON billing_budget USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_budgetalert USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_budgetmonth USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_budgetstop USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_campaign USING btree (code);
CREATE UNIQUE INDEX (generated) ON billing_campaign USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_cardform USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_commitment USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_correction USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_correctionpart USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_correctionshare USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_creditnote USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_creditnoteline USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_discount USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_dispute USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_disputestep USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_dunningstep USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_grant USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_grantdraw USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_grantlapse USING btree (grant_id);
CREATE UNIQUE INDEX (generated) ON billing_grantlapse USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_grantreturn USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_hold USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_hold USING btree (lease_id);
CREATE UNIQUE INDEX (generated) ON billing_holdpart USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_invoice USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_invoiceline USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_invoiceseries USING btree (series);
CREATE UNIQUE INDEX (generated) ON billing_invoicetax USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_keptpaper USING btree (credit_note_id);
CREATE UNIQUE INDEX (generated) ON billing_keptpaper USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_keptpaper USING btree (invoice_id);
CREATE UNIQUE INDEX (generated) ON billing_ledgeraccount USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_ledgerseal USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_ledgertransfer USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_letter USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_minimum USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_monthcharge USING btree (tenant_id, billed_period_id, kind, source, project_id, offering_id, price_version_id);
CREATE UNIQUE INDEX (generated) ON billing_payment USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_paymentdispute USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_paymentrefund USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_priceversion USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_quote USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_quote USING btree (lease_id);
CREATE UNIQUE INDEX (generated) ON billing_ratecard USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_ratedcharge USING btree (lease_id, seq, price_version_id, period_id, meter, kind, part, correction_id);
CREATE UNIQUE INDEX (generated) ON billing_ratingmark USING btree (tenant_id);
CREATE UNIQUE INDEX (generated) ON billing_refund USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_simulatedcharge USING btree (key);
CREATE UNIQUE INDEX (generated) ON billing_simulatedpayer USING btree (payer);
CREATE UNIQUE INDEX (generated) ON billing_simulatedrefund USING btree (key);
CREATE UNIQUE INDEX (generated) ON billing_stripecharge USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripecommand USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripecommand USING btree (idem);
CREATE UNIQUE INDEX (generated) ON billing_stripecustomer USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripeday USING btree (day);
CREATE UNIQUE INDEX (generated) ON billing_stripeday USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripedifference USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripeevent USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripepace USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_stripeseen USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_taxedas USING btree (offering_id);
CREATE UNIQUE INDEX (generated) ON billing_taxrate USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_tenantterms USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_tokencap USING btree (token_id);
CREATE UNIQUE INDEX (generated) ON billing_tokenday USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_tokenlease USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_tokenlease USING btree (lease_id);
CREATE UNIQUE INDEX (generated) ON billing_tokenpart USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_topup USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_wallet USING btree (id);
CREATE UNIQUE INDEX (generated) ON billing_walletpart USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_allocation USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_cluster USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_cluster USING btree (name);
CREATE UNIQUE INDEX (generated) ON broker_clustercredential USING btree (cluster_id);
CREATE UNIQUE INDEX (generated) ON broker_clusterobject USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_clusterwatch USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_examination USING btree (cluster_id);
CREATE UNIQUE INDEX (generated) ON broker_gpu USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_gpu USING btree (uuid);
CREATE UNIQUE INDEX (generated) ON broker_gpumodel USING btree (name);
CREATE UNIQUE INDEX (generated) ON broker_installation USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_inventorychange USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_layoutchange USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_layoutstep USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_lease USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_move USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_moveentry USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_moveplan USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_node USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_offering USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_orphan USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_simulatednode USING btree (node);
CREATE UNIQUE INDEX (generated) ON broker_simulatedpod USING btree (name);
CREATE UNIQUE INDEX (generated) ON broker_simulatedvolume USING btree (name);
CREATE UNIQUE INDEX (generated) ON broker_transition USING btree (lease_id, seq);
CREATE UNIQUE INDEX (generated) ON broker_volume USING btree (id);
CREATE UNIQUE INDEX (generated) ON broker_volumestep USING btree (volume_id, seq);
CREATE UNIQUE INDEX (generated) ON cache USING btree (cache_key);
CREATE UNIQUE INDEX (generated) ON django_content_type USING btree (app_label, model);
CREATE UNIQUE INDEX (generated) ON django_content_type USING btree (id);
CREATE UNIQUE INDEX (generated) ON django_migrations USING btree (id);
CREATE UNIQUE INDEX (generated) ON django_session USING btree (session_key);
CREATE UNIQUE INDEX (generated) ON mfa_authenticator USING btree (id);
CREATE UNIQUE INDEX (generated) ON ports_ring USING btree (id);
CREATE UNIQUE INDEX (generated) ON socialaccount_socialaccount USING btree (id);
CREATE UNIQUE INDEX (generated) ON socialaccount_socialaccount USING btree (provider, uid);
CREATE UNIQUE INDEX (generated) ON socialaccount_socialapp USING btree (id);
CREATE UNIQUE INDEX (generated) ON socialaccount_socialtoken USING btree (app_id, account_id);
CREATE UNIQUE INDEX (generated) ON socialaccount_socialtoken USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_apitoken USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_apitoken USING btree (prefix);
CREATE UNIQUE INDEX (generated) ON tenants_auditevent USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_invitation USING btree (digest);
CREATE UNIQUE INDEX (generated) ON tenants_invitation USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_member USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_project USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_quota USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_serviceaccount USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_storedanswer USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_tenant USING btree (id);
CREATE UNIQUE INDEX (generated) ON tenants_user USING btree (email);
CREATE UNIQUE INDEX (generated) ON tenants_user USING btree (id);
CREATE UNIQUE INDEX answer_once_per_key ON tenants_storedanswer USING btree (tenant_id, bearer, method, path, key);
CREATE UNIQUE INDEX auto_topup_once_a_tenant ON billing_autotopup USING btree (tenant_id);
CREATE UNIQUE INDEX budget_alert_once ON billing_budgetalert USING btree (tenant_id, budget_id, period_id, measure, percent) WHERE (lifted_at IS NULL);
CREATE UNIQUE INDEX budget_month_once ON billing_budgetmonth USING btree (tenant_id, budget_id, period_id);
CREATE UNIQUE INDEX budget_once_per_node ON billing_budget USING btree (tenant_id, project_id);
CREATE UNIQUE INDEX budget_stop_once ON billing_budgetstop USING btree (tenant_id, budget_id, period_id, what) WHERE (lifted_at IS NULL);
CREATE UNIQUE INDEX campaign_redeemed_once ON billing_discount USING btree (tenant_id, campaign_id);
CREATE UNIQUE INDEX correction_credited_once ON billing_creditnote USING btree (invoice_id, correction_id) WHERE (NOT ((correction_id)::text = ''::text));
CREATE UNIQUE INDEX correction_once_a_tenant ON billing_correctionshare USING btree (correction_id, tenant_id);
CREATE UNIQUE INDEX correction_part_once ON billing_correctionpart USING btree (tenant_id, share_id, n);
CREATE UNIQUE INDEX credit_note_number_once ON billing_creditnote USING btree (series, number);
CREATE UNIQUE INDEX dispute_step_once ON billing_disputestep USING btree (tenant_id, dispute_id, n);
CREATE UNIQUE INDEX dunning_step_once ON billing_dunningstep USING btree (tenant_id, invoice_id, n);
CREATE UNIQUE INDEX gpu_once_per_node ON broker_gpu USING btree (node_id, index);
CREATE UNIQUE INDEX grant_draws_once_a_line ON billing_grantdraw USING btree (grant_id, line_id);
CREATE UNIQUE INDEX grant_given_once ON billing_grant USING btree (tenant_id, idem);
CREATE UNIQUE INDEX grant_returned_once_a_note ON billing_grantreturn USING btree (credit_note_id, grant_id);
CREATE UNIQUE INDEX hold_part_once ON billing_holdpart USING btree (tenant_id, hold_id, month_id);
CREATE UNIQUE INDEX invoice_number_once ON billing_invoice USING btree (series, number);
CREATE UNIQUE INDEX layout_step_once ON broker_layoutstep USING btree (change_id, seq);
CREATE UNIQUE INDEX ledger_account_once ON billing_ledgeraccount USING btree (tenant_id, type, currency, ref) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX letter_once ON billing_letter USING btree (tenant_id, kind, about);
CREATE UNIQUE INDEX line_credited_once_a_note ON billing_creditnoteline USING btree (credit_note_id, line_id);
CREATE UNIQUE INDEX line_number_once ON billing_invoiceline USING btree (invoice_id, n);
CREATE UNIQUE INDEX line_once ON billing_invoiceline USING btree (invoice_id, project_id, offering_id, price_version_id);
CREATE UNIQUE INDEX member_once ON tenants_member USING btree (tenant_id, user_id, project_id) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX move_entry_once ON broker_moveentry USING btree (plan_id, seq);
CREATE UNIQUE INDEX move_has_its_turn ON broker_move USING btree (tenant_id, plan_id, n);
CREATE UNIQUE INDEX node_once_per_cluster ON broker_node USING btree (cluster_id, name);
CREATE UNIQUE INDEX object_once_per_cluster ON broker_clusterobject USING btree (cluster_id, kind, namespace, name);
CREATE UNIQUE INDEX offering_once ON broker_offering USING btree (gpu_model_id, profile, isolation, price_class, region);
CREATE UNIQUE INDEX one_invoice_per_period ON billing_invoice USING btree (tenant_id, period_id) WHERE (NOT ((status)::text = 'void'::text));
CREATE UNIQUE INDEX one_layout_change_per_node ON broker_layoutchange USING btree (node_id) WHERE (NOT ((step)::text = ANY ((ARRAY['cancelled'::character varying, 'done'::character varying, 'quarantined'::character varying])::text[])));
CREATE UNIQUE INDEX one_open_dispute_of_a_line ON billing_dispute USING btree (line_id) WHERE ((status)::text = 'open'::text);
CREATE UNIQUE INDEX one_open_move_per_lease ON broker_move USING btree (tenant_id, lease_id) WHERE ((state)::text = ANY ((ARRAY['moving'::character varying, 'noticed'::character varying, 'returning'::character varying])::text[]));
CREATE UNIQUE INDEX one_open_plan_per_pool ON broker_moveplan USING btree (cluster_id, gpu_model_id) WHERE (NOT ((state)::text = ANY ((ARRAY['cancelled'::character varying, 'declined'::character varying, 'done'::character varying, 'failed'::character varying])::text[])));
CREATE UNIQUE INDEX one_payment_per_invoice ON billing_payment USING btree (invoice_id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying, 'succeeded'::character varying])::text[]));
CREATE UNIQUE INDEX one_refund_at_a_time ON billing_refund USING btree (payment_id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying])::text[]));
CREATE UNIQUE INDEX one_tax_per_category ON billing_invoicetax USING btree (invoice_id, category);
CREATE UNIQUE INDEX one_topup_a_window ON billing_topup USING btree (tenant_id, "window");
CREATE UNIQUE INDEX one_topup_at_a_time ON billing_topup USING btree (tenant_id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'stuck'::character varying])::text[]));
CREATE UNIQUE INDEX orphan_once_per_cluster ON broker_orphan USING btree (cluster_id, name) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX period_once ON billing_billingperiod USING btree (tenant_id, label);
CREATE UNIQUE INDEX project_name_once ON tenants_project USING btree (tenant_id, parent_id, name) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX quota_once_per_node ON tenants_quota USING btree (tenant_id, project_id, kind);
CREATE UNIQUE INDEX rate_card_once ON billing_ratecard USING btree (tenant_id, name) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX seal_once ON billing_ledgerseal USING btree (tenant_id, n);
CREATE UNIQUE INDEX service_account_name_once ON tenants_serviceaccount USING btree (tenant_id, name);
CREATE UNIQUE INDEX storage_once_a_region ON broker_offering USING btree (region) WHERE ((state)::text = 'metered'::text);
CREATE UNIQUE INDEX stripe_command_once ON billing_stripecommand USING btree (tenant_id, subject, step, round);
CREATE UNIQUE INDEX stripe_customer_once ON billing_stripecustomer USING btree (tenant_id);
CREATE UNIQUE INDEX stripe_difference_once ON billing_stripedifference USING btree (day_id, kind, ref);
CREATE UNIQUE INDEX stripe_seen_once ON billing_stripeseen USING btree (day_id, charge);
CREATE UNIQUE INDEX terms_once_a_tenant ON billing_tenantterms USING btree (tenant_id);
CREATE UNIQUE INDEX token_day_once ON billing_tokenday USING btree (tenant_id, cap_id, day);
CREATE UNIQUE INDEX token_part_once ON billing_tokenpart USING btree (tenant_id, of_id, day_id);
CREATE UNIQUE INDEX transfer_once ON billing_ledgertransfer USING btree (idem);
CREATE UNIQUE INDEX transfer_reversed_once ON billing_ledgertransfer USING btree (tenant_id, reverses_id) WHERE (reverses_id IS NOT NULL);
CREATE UNIQUE INDEX transition_moment_once ON broker_transition USING btree (lease_id, seq, at);
CREATE UNIQUE INDEX transition_released_once ON broker_transition USING btree (lease_id) WHERE ((after)::text = 'released'::text);
CREATE UNIQUE INDEX unique_authenticator_type ON mfa_authenticator USING btree (user_id, type) WHERE ((type)::text = ANY ((ARRAY['totp'::character varying, 'recovery_codes'::character varying])::text[]));
CREATE UNIQUE INDEX unique_primary_email ON account_emailaddress USING btree (user_id, "primary") WHERE "primary";
CREATE UNIQUE INDEX unique_verified_email ON account_emailaddress USING btree (email) WHERE verified;
CREATE UNIQUE INDEX volume_named_once ON broker_volume USING btree (tenant_id, project_id, name) WHERE (NOT ((state)::text = 'deleted'::text));
CREATE UNIQUE INDEX volume_of_one_lease ON broker_lease USING btree (tenant_id, volume_id) WHERE ((NOT ((state)::text = 'released'::text)) AND (volume_id IS NOT NULL));
CREATE UNIQUE INDEX volume_step_moment_once ON broker_volumestep USING btree (volume_id, seq, at, size_gib, offering_id, project_id);
CREATE UNIQUE INDEX wallet_once_a_tenant ON billing_wallet USING btree (tenant_id);
CREATE UNIQUE INDEX wallet_part_once ON billing_walletpart USING btree (tenant_id, hold_id, period_id) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX watch_once_per_cluster ON broker_clusterwatch USING btree (cluster_id, kind);
CREATE UNLOGGED TABLE cache OWNER gpubroker_owner;
CREATE VIEW billing_tenantprice OWNER gpubroker_owner WITH (security_invoker=true);
CREATE VIEW broker_occupied OWNER gpubroker_sweep;
CREATE VIEW broker_placechange OWNER gpubroker_sweep;
CREATE VIEW broker_vacated OWNER gpubroker_sweep;
CREATE VIEW broker_waiting OWNER gpubroker_sweep;
GRANT CREATE, USAGE ON SCHEMA public TO gpubroker_owner WITH GRANT OPTION;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE account_emailaddress TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE account_emailconfirmation TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE auth_group TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE auth_group_permissions TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE auth_permission TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_accountbalance TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_autotopup TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_balancedraw TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_billingdetails TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_billingperiod TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_billingrun TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_budget TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_budgetalert TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_budgetmonth TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_budgetstop TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_campaign TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_cardform TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_commitment TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_correction TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_correctionpart TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_correctionshare TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_creditnote TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_creditnoteline TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_discount TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_dispute TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_disputestep TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_dunningstep TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_grant TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_grantdraw TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_grantlapse TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_grantreturn TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_hold TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_holdpart TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_invoice TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_invoiceline TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_invoiceseries TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_invoicetax TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_keptpaper TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ledgeraccount TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ledgerseal TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ledgertransfer TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_letter TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_minimum TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_monthcharge TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_payment TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_paymentdispute TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_paymentrefund TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_priceversion TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_quote TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ratecard TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ratedcharge TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_ratingmark TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_refund TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_simulatedcharge TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_simulatedpayer TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_simulatedrefund TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripecharge TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripecommand TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripecustomer TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripeday TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripedifference TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripeevent TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripepace TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_stripeseen TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_taxedas TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_taxrate TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tenantprice TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tenantterms TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tokencap TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tokenday TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tokenlease TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_tokenpart TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_topup TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_wallet TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE billing_walletpart TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_allocation TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_cluster TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_clustercredential TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_clusterobject TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_clusterwatch TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_examination TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_gpu TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_gpumodel TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_installation TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_inventorychange TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_layoutchange TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_layoutstep TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_lease TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_move TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_moveentry TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_moveplan TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_node TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_occupied TO gpubroker_sweep;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_offering TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_orphan TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_placechange TO gpubroker_sweep;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_simulatednode TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_simulatedpod TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_simulatedvolume TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_transition TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_vacated TO gpubroker_sweep;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_volume TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_volumestep TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE broker_waiting TO gpubroker_sweep;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE cache TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE django_content_type TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE django_migrations TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE django_session TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE mfa_authenticator TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE ports_ring TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE socialaccount_socialaccount TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE socialaccount_socialapp TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE socialaccount_socialtoken TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_apitoken TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_auditevent TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_invitation TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_member TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_project TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_quota TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_serviceaccount TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_storedanswer TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_tenant TO gpubroker_owner;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE tenants_user TO gpubroker_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE account_emailaddress TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE account_emailaddress TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE account_emailconfirmation TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE account_emailconfirmation TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_group TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_group TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_group_permissions TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_group_permissions TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_permission TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE auth_permission TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_autotopup TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_autotopup TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingdetails TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingdetails TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingperiod TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingperiod TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingrun TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_billingrun TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budget TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budget TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetalert TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetalert TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetmonth TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetmonth TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetstop TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_budgetstop TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_campaign TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_campaign TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_cardform TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_cardform TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_commitment TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_commitment TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_correction TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_correction TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_correctionshare TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_correctionshare TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_discount TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_discount TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_dispute TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_dispute TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_hold TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_hold TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_holdpart TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_holdpart TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoice TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoice TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoiceline TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoiceline TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoiceseries TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoiceseries TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoicetax TO gpubroker_sweep;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoicetax TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_invoicetax TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_letter TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_letter TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_minimum TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_minimum TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_priceversion TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_priceversion TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_ratecard TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_ratecard TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_ratingmark TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_ratingmark TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedcharge TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedcharge TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedpayer TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedpayer TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedrefund TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_simulatedrefund TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripecustomer TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripecustomer TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripeday TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripeday TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripedifference TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripedifference TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripepace TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripepace TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripeseen TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_stripeseen TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_taxedas TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_taxedas TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_taxrate TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_taxrate TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tenantprice TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tenantprice TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tenantterms TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tenantterms TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokencap TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokencap TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenday TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenday TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenlease TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenlease TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenpart TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_tokenpart TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_wallet TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_wallet TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_walletpart TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE billing_walletpart TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_allocation TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_allocation TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_cluster TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_cluster TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clustercredential TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clustercredential TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clusterobject TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clusterobject TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clusterwatch TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_clusterwatch TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_examination TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_examination TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_gpu TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_gpu TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_gpumodel TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_gpumodel TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_installation TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_installation TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_layoutchange TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_layoutchange TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_lease TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_lease TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_move TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_move TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_moveplan TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_moveplan TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_node TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_node TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_occupied TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_occupied TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_offering TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_offering TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_orphan TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_orphan TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_placechange TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_placechange TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatednode TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatednode TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatedpod TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatedpod TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatedvolume TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_simulatedvolume TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_vacated TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_vacated TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_volume TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_volume TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_waiting TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE broker_waiting TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE cache TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE cache TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_content_type TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_content_type TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_migrations TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_migrations TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_session TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE django_session TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE mfa_authenticator TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE mfa_authenticator TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE ports_ring TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE ports_ring TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialaccount TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialaccount TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialapp TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialapp TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialtoken TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE socialaccount_socialtoken TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_apitoken TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_apitoken TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_invitation TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_invitation TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_member TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_member TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_project TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_project TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_quota TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_quota TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_serviceaccount TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_serviceaccount TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_storedanswer TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_storedanswer TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_tenant TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_tenant TO gpubroker_worker;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_user TO gpubroker_web;
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE tenants_user TO gpubroker_worker;
GRANT EXECUTE ON FUNCTION count_parts_in() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_parts_in() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_parts_out() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_parts_out() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_parts_over() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_parts_over() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_token_part() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_token_part() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_wallet_in() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_wallet_in() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_wallet_out() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_wallet_out() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION count_wallet_over() TO PUBLIC;
GRANT EXECUTE ON FUNCTION count_wallet_over() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION hold_once_free() TO PUBLIC;
GRANT EXECUTE ON FUNCTION hold_once_free() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION knock_with_token(wanted text, hashed text, at timestamp with time zone) TO gpubroker_door;
GRANT EXECUTE ON FUNCTION knock_with_token(wanted text, hashed text, at timestamp with time zone) TO gpubroker_web;
GRANT EXECUTE ON FUNCTION knock_with_token(wanted text, hashed text, at timestamp with time zone) TO gpubroker_worker;
GRANT EXECUTE ON FUNCTION knock_with_user(who text, wanted text) TO gpubroker_door;
GRANT EXECUTE ON FUNCTION knock_with_user(who text, wanted text) TO gpubroker_web;
GRANT EXECUTE ON FUNCTION knock_with_user(who text, wanted text) TO gpubroker_worker;
GRANT EXECUTE ON FUNCTION note_card_gone() TO PUBLIC;
GRANT EXECUTE ON FUNCTION note_card_gone() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION note_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION note_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION note_place_gone() TO PUBLIC;
GRANT EXECUTE ON FUNCTION note_place_gone() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION open_balance() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone) TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone) TO gpubroker_sweep;
GRANT EXECUTE ON FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone) TO gpubroker_web;
GRANT EXECUTE ON FUNCTION open_platform_account(wanted text, code text, moment timestamp with time zone) TO gpubroker_worker;
GRANT EXECUTE ON FUNCTION post_transfers() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION price_tiles(model text, nano bigint, starts bigint[], prices bigint[]) TO PUBLIC;
GRANT EXECUTE ON FUNCTION price_tiles(model text, nano bigint, starts bigint[], prices bigint[]) TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION quota_counts_holdings() TO PUBLIC;
GRANT EXECUTE ON FUNCTION quota_counts_holdings() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_after_released() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_after_released() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_campaign_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_campaign_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_change_of_final() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_change_of_final() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_commitment_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_commitment_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_discount_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_discount_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_final_invoice_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_final_invoice_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_final_line_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_final_line_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_foreign_share() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_foreign_share() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_granted_money() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_granted_money() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_later_lines() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_later_lines() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_minimum_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_minimum_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_card() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_card() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_draw() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_draw() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_grant_draws() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_grant_draws() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_grant_returns() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_grant_returns() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_lapse() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_lapse() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_note() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_note() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_paper() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_paper() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_parts() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_parts() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_payment() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_payment() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_quote() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_quote() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_return_sum() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_return_sum() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_odd_tax() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_odd_tax() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_other_currency() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_overcredit() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_overcredit() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_payment_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_payment_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_price_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_price_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_refund_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_refund_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_spans_of_closed_months() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_spans_of_closed_months() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_stripe_charge_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_stripe_charge_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_stripe_command_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_stripe_command_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_tax_rate_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_tax_rate_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_terms_of_closed_months() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_terms_of_closed_months() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_terms_of_other_currency() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_terms_of_other_currency() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_topup_change() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_topup_change() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_undecided_tax() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_undecided_tax() TO gpubroker_owner;
GRANT EXECUTE ON FUNCTION refuse_unpaid() TO PUBLIC;
GRANT EXECUTE ON FUNCTION refuse_unpaid() TO gpubroker_owner;
GRANT INSERT, SELECT ON TABLE billing_accountbalance TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_accountbalance TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_balancedraw TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_balancedraw TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_correctionpart TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_correctionpart TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_creditnote TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_creditnote TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_creditnoteline TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_creditnoteline TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_disputestep TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_disputestep TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_dunningstep TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_dunningstep TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_grant TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_grant TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_grantdraw TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_grantdraw TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_grantlapse TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_grantlapse TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_grantreturn TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_grantreturn TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_keptpaper TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_keptpaper TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_ledgeraccount TO gpubroker_sweep;
GRANT INSERT, SELECT ON TABLE billing_ledgeraccount TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_ledgeraccount TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_ledgerseal TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_ledgerseal TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_ledgertransfer TO gpubroker_sweep;
GRANT INSERT, SELECT ON TABLE billing_ledgertransfer TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_ledgertransfer TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_letter TO gpubroker_sweep;
GRANT INSERT, SELECT ON TABLE billing_monthcharge TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_monthcharge TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_quote TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_quote TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE billing_ratedcharge TO gpubroker_sweep;
GRANT INSERT, SELECT ON TABLE billing_ratedcharge TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE billing_ratedcharge TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE broker_inventorychange TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE broker_inventorychange TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE broker_layoutstep TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE broker_layoutstep TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE broker_moveentry TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE broker_moveentry TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE broker_transition TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE broker_transition TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE broker_volumestep TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE broker_volumestep TO gpubroker_worker;
GRANT INSERT, SELECT ON TABLE tenants_auditevent TO gpubroker_sweep;
GRANT INSERT, SELECT ON TABLE tenants_auditevent TO gpubroker_web;
GRANT INSERT, SELECT ON TABLE tenants_auditevent TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_billingperiod TO gpubroker_sweep;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_invoice TO gpubroker_sweep;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_invoiceline TO gpubroker_sweep;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_invoiceseries TO gpubroker_sweep;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_payment TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_payment TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_paymentdispute TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_paymentdispute TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_paymentrefund TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_paymentrefund TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_ratingmark TO gpubroker_sweep;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_refund TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_refund TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_stripecharge TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_stripecommand TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_stripeevent TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_stripeevent TO gpubroker_worker;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_topup TO gpubroker_web;
GRANT INSERT, SELECT, UPDATE ON TABLE billing_topup TO gpubroker_worker;
GRANT SELECT ON TABLE account_emailaddress TO gpubroker_door;
GRANT SELECT ON TABLE account_emailaddress TO gpubroker_staff;
GRANT SELECT ON TABLE account_emailaddress TO gpubroker_sweep;
GRANT SELECT ON TABLE account_emailconfirmation TO gpubroker_door;
GRANT SELECT ON TABLE account_emailconfirmation TO gpubroker_staff;
GRANT SELECT ON TABLE account_emailconfirmation TO gpubroker_sweep;
GRANT SELECT ON TABLE auth_group TO gpubroker_door;
GRANT SELECT ON TABLE auth_group TO gpubroker_staff;
GRANT SELECT ON TABLE auth_group TO gpubroker_sweep;
GRANT SELECT ON TABLE auth_group_permissions TO gpubroker_door;
GRANT SELECT ON TABLE auth_group_permissions TO gpubroker_staff;
GRANT SELECT ON TABLE auth_group_permissions TO gpubroker_sweep;
GRANT SELECT ON TABLE auth_permission TO gpubroker_door;
GRANT SELECT ON TABLE auth_permission TO gpubroker_staff;
GRANT SELECT ON TABLE auth_permission TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_accountbalance TO gpubroker_door;
GRANT SELECT ON TABLE billing_accountbalance TO gpubroker_staff;
GRANT SELECT ON TABLE billing_accountbalance TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_autotopup TO gpubroker_door;
GRANT SELECT ON TABLE billing_autotopup TO gpubroker_staff;
GRANT SELECT ON TABLE billing_autotopup TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_balancedraw TO gpubroker_door;
GRANT SELECT ON TABLE billing_balancedraw TO gpubroker_staff;
GRANT SELECT ON TABLE billing_balancedraw TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_billingdetails TO gpubroker_door;
GRANT SELECT ON TABLE billing_billingdetails TO gpubroker_staff;
GRANT SELECT ON TABLE billing_billingdetails TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_billingperiod TO gpubroker_door;
GRANT SELECT ON TABLE billing_billingperiod TO gpubroker_staff;
GRANT SELECT ON TABLE billing_billingrun TO gpubroker_door;
GRANT SELECT ON TABLE billing_billingrun TO gpubroker_staff;
GRANT SELECT ON TABLE billing_billingrun TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_budget TO gpubroker_door;
GRANT SELECT ON TABLE billing_budget TO gpubroker_staff;
GRANT SELECT ON TABLE billing_budget TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_budgetalert TO gpubroker_door;
GRANT SELECT ON TABLE billing_budgetalert TO gpubroker_staff;
GRANT SELECT ON TABLE billing_budgetalert TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_budgetmonth TO gpubroker_door;
GRANT SELECT ON TABLE billing_budgetmonth TO gpubroker_staff;
GRANT SELECT ON TABLE billing_budgetmonth TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_budgetstop TO gpubroker_door;
GRANT SELECT ON TABLE billing_budgetstop TO gpubroker_staff;
GRANT SELECT ON TABLE billing_budgetstop TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_campaign TO gpubroker_door;
GRANT SELECT ON TABLE billing_campaign TO gpubroker_staff;
GRANT SELECT ON TABLE billing_campaign TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_cardform TO gpubroker_door;
GRANT SELECT ON TABLE billing_cardform TO gpubroker_staff;
GRANT SELECT ON TABLE billing_cardform TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_commitment TO gpubroker_door;
GRANT SELECT ON TABLE billing_commitment TO gpubroker_staff;
GRANT SELECT ON TABLE billing_commitment TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_correction TO gpubroker_door;
GRANT SELECT ON TABLE billing_correction TO gpubroker_staff;
GRANT SELECT ON TABLE billing_correction TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_correctionpart TO gpubroker_door;
GRANT SELECT ON TABLE billing_correctionpart TO gpubroker_staff;
GRANT SELECT ON TABLE billing_correctionpart TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_correctionshare TO gpubroker_door;
GRANT SELECT ON TABLE billing_correctionshare TO gpubroker_staff;
GRANT SELECT ON TABLE billing_correctionshare TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_creditnote TO gpubroker_door;
GRANT SELECT ON TABLE billing_creditnote TO gpubroker_staff;
GRANT SELECT ON TABLE billing_creditnote TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_creditnoteline TO gpubroker_door;
GRANT SELECT ON TABLE billing_creditnoteline TO gpubroker_staff;
GRANT SELECT ON TABLE billing_creditnoteline TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_discount TO gpubroker_door;
GRANT SELECT ON TABLE billing_discount TO gpubroker_staff;
GRANT SELECT ON TABLE billing_discount TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_dispute TO gpubroker_door;
GRANT SELECT ON TABLE billing_dispute TO gpubroker_staff;
GRANT SELECT ON TABLE billing_dispute TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_disputestep TO gpubroker_door;
GRANT SELECT ON TABLE billing_disputestep TO gpubroker_staff;
GRANT SELECT ON TABLE billing_disputestep TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_dunningstep TO gpubroker_door;
GRANT SELECT ON TABLE billing_dunningstep TO gpubroker_staff;
GRANT SELECT ON TABLE billing_dunningstep TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_grant TO gpubroker_door;
GRANT SELECT ON TABLE billing_grant TO gpubroker_staff;
GRANT SELECT ON TABLE billing_grant TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_grantdraw TO gpubroker_door;
GRANT SELECT ON TABLE billing_grantdraw TO gpubroker_staff;
GRANT SELECT ON TABLE billing_grantdraw TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_grantlapse TO gpubroker_door;
GRANT SELECT ON TABLE billing_grantlapse TO gpubroker_staff;
GRANT SELECT ON TABLE billing_grantlapse TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_grantreturn TO gpubroker_door;
GRANT SELECT ON TABLE billing_grantreturn TO gpubroker_staff;
GRANT SELECT ON TABLE billing_grantreturn TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_hold TO gpubroker_door;
GRANT SELECT ON TABLE billing_hold TO gpubroker_staff;
GRANT SELECT ON TABLE billing_hold TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_holdpart TO gpubroker_door;
GRANT SELECT ON TABLE billing_holdpart TO gpubroker_staff;
GRANT SELECT ON TABLE billing_holdpart TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_invoice TO gpubroker_door;
GRANT SELECT ON TABLE billing_invoice TO gpubroker_staff;
GRANT SELECT ON TABLE billing_invoiceline TO gpubroker_door;
GRANT SELECT ON TABLE billing_invoiceline TO gpubroker_staff;
GRANT SELECT ON TABLE billing_invoiceseries TO gpubroker_door;
GRANT SELECT ON TABLE billing_invoiceseries TO gpubroker_staff;
GRANT SELECT ON TABLE billing_invoicetax TO gpubroker_door;
GRANT SELECT ON TABLE billing_invoicetax TO gpubroker_staff;
GRANT SELECT ON TABLE billing_keptpaper TO gpubroker_door;
GRANT SELECT ON TABLE billing_keptpaper TO gpubroker_staff;
GRANT SELECT ON TABLE billing_keptpaper TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_ledgeraccount TO gpubroker_door;
GRANT SELECT ON TABLE billing_ledgeraccount TO gpubroker_staff;
GRANT SELECT ON TABLE billing_ledgerseal TO gpubroker_door;
GRANT SELECT ON TABLE billing_ledgerseal TO gpubroker_staff;
GRANT SELECT ON TABLE billing_ledgerseal TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_ledgertransfer TO gpubroker_door;
GRANT SELECT ON TABLE billing_ledgertransfer TO gpubroker_staff;
GRANT SELECT ON TABLE billing_letter TO gpubroker_door;
GRANT SELECT ON TABLE billing_letter TO gpubroker_staff;
GRANT SELECT ON TABLE billing_minimum TO gpubroker_door;
GRANT SELECT ON TABLE billing_minimum TO gpubroker_staff;
GRANT SELECT ON TABLE billing_minimum TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_monthcharge TO gpubroker_door;
GRANT SELECT ON TABLE billing_monthcharge TO gpubroker_staff;
GRANT SELECT ON TABLE billing_monthcharge TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_payment TO gpubroker_door;
GRANT SELECT ON TABLE billing_payment TO gpubroker_staff;
GRANT SELECT ON TABLE billing_payment TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_paymentdispute TO gpubroker_door;
GRANT SELECT ON TABLE billing_paymentdispute TO gpubroker_staff;
GRANT SELECT ON TABLE billing_paymentdispute TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_paymentrefund TO gpubroker_door;
GRANT SELECT ON TABLE billing_paymentrefund TO gpubroker_staff;
GRANT SELECT ON TABLE billing_paymentrefund TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_priceversion TO gpubroker_door;
GRANT SELECT ON TABLE billing_priceversion TO gpubroker_staff;
GRANT SELECT ON TABLE billing_priceversion TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_quote TO gpubroker_door;
GRANT SELECT ON TABLE billing_quote TO gpubroker_staff;
GRANT SELECT ON TABLE billing_quote TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_ratecard TO gpubroker_door;
GRANT SELECT ON TABLE billing_ratecard TO gpubroker_staff;
GRANT SELECT ON TABLE billing_ratecard TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_ratedcharge TO gpubroker_door;
GRANT SELECT ON TABLE billing_ratedcharge TO gpubroker_staff;
GRANT SELECT ON TABLE billing_ratingmark TO gpubroker_door;
GRANT SELECT ON TABLE billing_ratingmark TO gpubroker_staff;
GRANT SELECT ON TABLE billing_refund TO gpubroker_door;
GRANT SELECT ON TABLE billing_refund TO gpubroker_staff;
GRANT SELECT ON TABLE billing_refund TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_simulatedcharge TO gpubroker_door;
GRANT SELECT ON TABLE billing_simulatedcharge TO gpubroker_staff;
GRANT SELECT ON TABLE billing_simulatedcharge TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_simulatedpayer TO gpubroker_door;
GRANT SELECT ON TABLE billing_simulatedpayer TO gpubroker_staff;
GRANT SELECT ON TABLE billing_simulatedpayer TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_simulatedrefund TO gpubroker_door;
GRANT SELECT ON TABLE billing_simulatedrefund TO gpubroker_staff;
GRANT SELECT ON TABLE billing_simulatedrefund TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripecharge TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripecharge TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripecharge TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripecharge TO gpubroker_web;
GRANT SELECT ON TABLE billing_stripecommand TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripecommand TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripecommand TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripecommand TO gpubroker_web;
GRANT SELECT ON TABLE billing_stripecustomer TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripecustomer TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripecustomer TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripeday TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripeday TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripeday TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripedifference TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripedifference TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripedifference TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripeevent TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripeevent TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripeevent TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripepace TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripepace TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripepace TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_stripeseen TO gpubroker_door;
GRANT SELECT ON TABLE billing_stripeseen TO gpubroker_staff;
GRANT SELECT ON TABLE billing_stripeseen TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_taxedas TO gpubroker_door;
GRANT SELECT ON TABLE billing_taxedas TO gpubroker_staff;
GRANT SELECT ON TABLE billing_taxedas TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_taxrate TO gpubroker_door;
GRANT SELECT ON TABLE billing_taxrate TO gpubroker_staff;
GRANT SELECT ON TABLE billing_taxrate TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tenantprice TO gpubroker_door;
GRANT SELECT ON TABLE billing_tenantprice TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tenantprice TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tenantterms TO gpubroker_door;
GRANT SELECT ON TABLE billing_tenantterms TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tenantterms TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tokencap TO gpubroker_door;
GRANT SELECT ON TABLE billing_tokencap TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tokencap TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tokenday TO gpubroker_door;
GRANT SELECT ON TABLE billing_tokenday TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tokenday TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tokenlease TO gpubroker_door;
GRANT SELECT ON TABLE billing_tokenlease TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tokenlease TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_tokenpart TO gpubroker_door;
GRANT SELECT ON TABLE billing_tokenpart TO gpubroker_staff;
GRANT SELECT ON TABLE billing_tokenpart TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_topup TO gpubroker_door;
GRANT SELECT ON TABLE billing_topup TO gpubroker_staff;
GRANT SELECT ON TABLE billing_topup TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_wallet TO gpubroker_door;
GRANT SELECT ON TABLE billing_wallet TO gpubroker_staff;
GRANT SELECT ON TABLE billing_wallet TO gpubroker_sweep;
GRANT SELECT ON TABLE billing_walletpart TO gpubroker_door;
GRANT SELECT ON TABLE billing_walletpart TO gpubroker_staff;
GRANT SELECT ON TABLE billing_walletpart TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_allocation TO gpubroker_door;
GRANT SELECT ON TABLE broker_allocation TO gpubroker_staff;
GRANT SELECT ON TABLE broker_allocation TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_cluster TO gpubroker_door;
GRANT SELECT ON TABLE broker_cluster TO gpubroker_staff;
GRANT SELECT ON TABLE broker_cluster TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_clusterobject TO gpubroker_door;
GRANT SELECT ON TABLE broker_clusterobject TO gpubroker_staff;
GRANT SELECT ON TABLE broker_clusterobject TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_clusterwatch TO gpubroker_door;
GRANT SELECT ON TABLE broker_clusterwatch TO gpubroker_staff;
GRANT SELECT ON TABLE broker_clusterwatch TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_examination TO gpubroker_door;
GRANT SELECT ON TABLE broker_examination TO gpubroker_staff;
GRANT SELECT ON TABLE broker_examination TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_gpu TO gpubroker_door;
GRANT SELECT ON TABLE broker_gpu TO gpubroker_staff;
GRANT SELECT ON TABLE broker_gpu TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_gpumodel TO gpubroker_door;
GRANT SELECT ON TABLE broker_gpumodel TO gpubroker_staff;
GRANT SELECT ON TABLE broker_gpumodel TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_installation TO gpubroker_door;
GRANT SELECT ON TABLE broker_installation TO gpubroker_staff;
GRANT SELECT ON TABLE broker_installation TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_inventorychange TO gpubroker_door;
GRANT SELECT ON TABLE broker_inventorychange TO gpubroker_staff;
GRANT SELECT ON TABLE broker_inventorychange TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_layoutchange TO gpubroker_door;
GRANT SELECT ON TABLE broker_layoutchange TO gpubroker_staff;
GRANT SELECT ON TABLE broker_layoutchange TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_layoutstep TO gpubroker_door;
GRANT SELECT ON TABLE broker_layoutstep TO gpubroker_staff;
GRANT SELECT ON TABLE broker_layoutstep TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_lease TO gpubroker_door;
GRANT SELECT ON TABLE broker_lease TO gpubroker_staff;
GRANT SELECT ON TABLE broker_lease TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_move TO gpubroker_door;
GRANT SELECT ON TABLE broker_move TO gpubroker_staff;
GRANT SELECT ON TABLE broker_move TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_moveentry TO gpubroker_door;
GRANT SELECT ON TABLE broker_moveentry TO gpubroker_staff;
GRANT SELECT ON TABLE broker_moveentry TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_moveplan TO gpubroker_door;
GRANT SELECT ON TABLE broker_moveplan TO gpubroker_staff;
GRANT SELECT ON TABLE broker_moveplan TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_node TO gpubroker_door;
GRANT SELECT ON TABLE broker_node TO gpubroker_staff;
GRANT SELECT ON TABLE broker_node TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_occupied TO gpubroker_door;
GRANT SELECT ON TABLE broker_occupied TO gpubroker_staff;
GRANT SELECT ON TABLE broker_offering TO gpubroker_door;
GRANT SELECT ON TABLE broker_offering TO gpubroker_staff;
GRANT SELECT ON TABLE broker_offering TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_orphan TO gpubroker_door;
GRANT SELECT ON TABLE broker_orphan TO gpubroker_staff;
GRANT SELECT ON TABLE broker_orphan TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_placechange TO gpubroker_door;
GRANT SELECT ON TABLE broker_placechange TO gpubroker_staff;
GRANT SELECT ON TABLE broker_simulatednode TO gpubroker_door;
GRANT SELECT ON TABLE broker_simulatednode TO gpubroker_staff;
GRANT SELECT ON TABLE broker_simulatednode TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_simulatedpod TO gpubroker_door;
GRANT SELECT ON TABLE broker_simulatedpod TO gpubroker_staff;
GRANT SELECT ON TABLE broker_simulatedpod TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_simulatedvolume TO gpubroker_door;
GRANT SELECT ON TABLE broker_simulatedvolume TO gpubroker_staff;
GRANT SELECT ON TABLE broker_simulatedvolume TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_transition TO gpubroker_door;
GRANT SELECT ON TABLE broker_transition TO gpubroker_staff;
GRANT SELECT ON TABLE broker_transition TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_vacated TO gpubroker_door;
GRANT SELECT ON TABLE broker_vacated TO gpubroker_staff;
GRANT SELECT ON TABLE broker_volume TO gpubroker_door;
GRANT SELECT ON TABLE broker_volume TO gpubroker_staff;
GRANT SELECT ON TABLE broker_volume TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_volumestep TO gpubroker_door;
GRANT SELECT ON TABLE broker_volumestep TO gpubroker_staff;
GRANT SELECT ON TABLE broker_volumestep TO gpubroker_sweep;
GRANT SELECT ON TABLE broker_waiting TO gpubroker_door;
GRANT SELECT ON TABLE broker_waiting TO gpubroker_staff;
GRANT SELECT ON TABLE cache TO gpubroker_door;
GRANT SELECT ON TABLE cache TO gpubroker_staff;
GRANT SELECT ON TABLE cache TO gpubroker_sweep;
GRANT SELECT ON TABLE django_content_type TO gpubroker_door;
GRANT SELECT ON TABLE django_content_type TO gpubroker_staff;
GRANT SELECT ON TABLE django_content_type TO gpubroker_sweep;
GRANT SELECT ON TABLE django_migrations TO gpubroker_door;
GRANT SELECT ON TABLE django_migrations TO gpubroker_staff;
GRANT SELECT ON TABLE django_migrations TO gpubroker_sweep;
GRANT SELECT ON TABLE django_session TO gpubroker_door;
GRANT SELECT ON TABLE django_session TO gpubroker_staff;
GRANT SELECT ON TABLE django_session TO gpubroker_sweep;
GRANT SELECT ON TABLE mfa_authenticator TO gpubroker_door;
GRANT SELECT ON TABLE mfa_authenticator TO gpubroker_staff;
GRANT SELECT ON TABLE mfa_authenticator TO gpubroker_sweep;
GRANT SELECT ON TABLE ports_ring TO gpubroker_door;
GRANT SELECT ON TABLE ports_ring TO gpubroker_staff;
GRANT SELECT ON TABLE ports_ring TO gpubroker_sweep;
GRANT SELECT ON TABLE socialaccount_socialaccount TO gpubroker_door;
GRANT SELECT ON TABLE socialaccount_socialaccount TO gpubroker_staff;
GRANT SELECT ON TABLE socialaccount_socialaccount TO gpubroker_sweep;
GRANT SELECT ON TABLE socialaccount_socialapp TO gpubroker_door;
GRANT SELECT ON TABLE socialaccount_socialapp TO gpubroker_staff;
GRANT SELECT ON TABLE socialaccount_socialapp TO gpubroker_sweep;
GRANT SELECT ON TABLE socialaccount_socialtoken TO gpubroker_door;
GRANT SELECT ON TABLE socialaccount_socialtoken TO gpubroker_staff;
GRANT SELECT ON TABLE socialaccount_socialtoken TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_apitoken TO gpubroker_door;
GRANT SELECT ON TABLE tenants_apitoken TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_apitoken TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_auditevent TO gpubroker_door;
GRANT SELECT ON TABLE tenants_auditevent TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_invitation TO gpubroker_door;
GRANT SELECT ON TABLE tenants_invitation TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_invitation TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_member TO gpubroker_door;
GRANT SELECT ON TABLE tenants_member TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_member TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_project TO gpubroker_door;
GRANT SELECT ON TABLE tenants_project TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_project TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_quota TO gpubroker_door;
GRANT SELECT ON TABLE tenants_quota TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_quota TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_serviceaccount TO gpubroker_door;
GRANT SELECT ON TABLE tenants_serviceaccount TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_serviceaccount TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_storedanswer TO gpubroker_door;
GRANT SELECT ON TABLE tenants_storedanswer TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_storedanswer TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_tenant TO gpubroker_door;
GRANT SELECT ON TABLE tenants_tenant TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_tenant TO gpubroker_sweep;
GRANT SELECT ON TABLE tenants_user TO gpubroker_door;
GRANT SELECT ON TABLE tenants_user TO gpubroker_staff;
GRANT SELECT ON TABLE tenants_user TO gpubroker_sweep;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE account_emailaddress_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE account_emailconfirmation_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE auth_group_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE auth_group_permissions_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE auth_permission_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_autotopup_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_billingperiod_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_billingrun_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_budgetmonth_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_correctionpart_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_correctionshare_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_creditnoteline_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_disputestep_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_dunningstep_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_holdpart_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_invoiceline_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_invoicetax_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_keptpaper_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_ledgeraccount_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_ledgerseal_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_ledgertransfer_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_priceversion_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_ratecard_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripecommand_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripecustomer_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripeday_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripedifference_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripepace_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_stripeseen_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_tenantterms_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_tokenday_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_tokenlease_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_tokenpart_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_wallet_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE billing_walletpart_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_clusterobject_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_clusterwatch_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_inventorychange_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_layoutstep_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_moveentry_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_orphan_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE broker_transition_position TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE django_content_type_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE django_migrations_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE mfa_authenticator_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE ports_ring_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE socialaccount_socialaccount_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE socialaccount_socialapp_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE socialaccount_socialtoken_id_seq TO gpubroker_owner;
GRANT SELECT, UPDATE, USAGE ON SEQUENCE tenants_storedanswer_id_seq TO gpubroker_owner;
GRANT SELECT, USAGE ON SEQUENCE account_emailaddress_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE account_emailaddress_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE account_emailconfirmation_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE account_emailconfirmation_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE auth_group_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE auth_group_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE auth_group_permissions_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE auth_group_permissions_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE auth_permission_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE auth_permission_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_autotopup_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_autotopup_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_billingperiod_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_billingperiod_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_billingrun_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_billingrun_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_budgetmonth_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_budgetmonth_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_correctionpart_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_correctionpart_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_correctionshare_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_correctionshare_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_creditnoteline_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_creditnoteline_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_disputestep_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_disputestep_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_dunningstep_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_dunningstep_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_holdpart_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_holdpart_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_invoiceline_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_invoiceline_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_invoicetax_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_invoicetax_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_keptpaper_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_keptpaper_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgeraccount_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgeraccount_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgerseal_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgerseal_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgertransfer_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_ledgertransfer_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_priceversion_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_priceversion_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_ratecard_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_ratecard_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripecommand_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripecommand_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripecustomer_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripecustomer_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripeday_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripeday_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripedifference_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripedifference_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripepace_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripepace_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_stripeseen_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_stripeseen_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_tenantterms_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_tenantterms_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenday_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenday_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenlease_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenlease_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenpart_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_tokenpart_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_wallet_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_wallet_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE billing_walletpart_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE billing_walletpart_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_clusterobject_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_clusterobject_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_clusterwatch_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_clusterwatch_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_inventorychange_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_inventorychange_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_layoutstep_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_layoutstep_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_moveentry_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_moveentry_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_orphan_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_orphan_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE broker_transition_position TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE broker_transition_position TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE django_content_type_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE django_content_type_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE django_migrations_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE django_migrations_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE mfa_authenticator_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE mfa_authenticator_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE ports_ring_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE ports_ring_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialaccount_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialaccount_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialapp_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialapp_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialtoken_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE socialaccount_socialtoken_id_seq TO gpubroker_worker;
GRANT SELECT, USAGE ON SEQUENCE tenants_storedanswer_id_seq TO gpubroker_web;
GRANT SELECT, USAGE ON SEQUENCE tenants_storedanswer_id_seq TO gpubroker_worker;
GRANT UPDATE ON COLUMN billing_taxrate.used TO gpubroker_sweep;
GRANT USAGE ON SCHEMA public TO PUBLIC;
GRANT USAGE ON SCHEMA public TO gpubroker_door;
GRANT USAGE ON SCHEMA public TO gpubroker_staff;
GRANT USAGE ON SCHEMA public TO gpubroker_sweep;
GRANT USAGE ON SCHEMA public TO gpubroker_web;
GRANT USAGE ON SCHEMA public TO gpubroker_worker;
GRANT gpubroker_door TO gpubroker_owner;
GRANT gpubroker_door TO gpubroker_web;
GRANT gpubroker_door TO gpubroker_worker;
GRANT gpubroker_staff TO gpubroker_web;
GRANT gpubroker_staff TO gpubroker_worker;
GRANT gpubroker_sweep TO gpubroker_owner;
GRANT gpubroker_sweep TO gpubroker_web;
GRANT gpubroker_sweep TO gpubroker_worker;
