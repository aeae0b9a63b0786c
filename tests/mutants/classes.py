"""Bug classes seen in other billing products (B1 to B44), each with its test.

Each also has a mistake that its test must find once planted. Sources are threads of the projects named: lago-api,
killbill, openmeter and others.

A mutant is a text of a file and what it is replaced with; the text stands there once. `python -m tests.mutants` plants
each in a copy and runs its test.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong replacement of a piece of code."""

    file: str
    text: str
    instead: str


@dataclass(frozen=True)
class BugClass:
    """What went wrong elsewhere, and where. Without a test it is owed."""

    id: str
    what: str
    source: str
    test: str = ""  # file::name
    mutant: Mutant | None = None


RATE, PERIODS = "billing/sql/rating/rate_leases.sql", "billing/domain/periods.py"
CLOSING = "billing/services/invoicing/month_close/close_month.py"
T = "tests/billing"

CLASSES = (
    BugClass("B1", "two invoices: already billed? asked in UTC and not in the tenant's zone", "lago 879, 662",
             f"{T}/month_close/test_close_month.py::test_b1_hourly_runs_around_midnight_make_one_invoice_in_every_zone",
             Mutant(PERIODS, "return max(local.astimezone(UTC), local.replace(fold=1).astimezone(UTC))",
                    "return local.replace(tzinfo=UTC)")),
    BugClass("B2", "a zone and an anchor make two invoices of one month", "lago 1074",
             f"{T}/periods/test_billing_periods.py::test_b2_b3_a_time_zone_change_leaves_no_gap_or_overlap_between_months",
             Mutant("billing/services/periods/billing_periods.py", "OFFSET_INTO_MONTH = timedelta(days=14)",
                    "OFFSET_INTO_MONTH = timedelta(0)")),
    BugClass("B3", "periods overlap or leave gaps, anchors 29 to 31", "lago 6173, killbill 127",
             f"{T}/domain/test_periods.py",
             Mutant(PERIODS, "day = min(anchor, monthrange(year, month + 1)[1])", "day = min(anchor, 28)")),
    BugClass("B4", "not billed for months after a short one", "killbill 127",
             f"{T}/month_close/test_close_month.py::test_b4_a_lease_without_transitions_for_months_is_billed_every_month",
             Mutant(CLOSING, "    billing_periods.create_missing_periods(now=now)\n    _begin_reviews(now)",
                    "    _begin_reviews(now)")),
    BugClass("B5", "clock changes alter what a stretch comes to", "lago 1438, 1442",
             f"{T}/rating/test_lease_rating.py::test_b5_months_with_clock_changes_are_charged_by_elapsed_seconds",
             Mutant(RATE, "extract(epoch FROM e - s)::bigint * quantity AS unit_seconds",
                    "extract(epoch FROM (e AT TIME ZONE 'Europe/Berlin') - (s AT TIME ZONE 'Europe/Berlin'))::bigint"
                    " * quantity AS unit_seconds")),
    BugClass("B6", "an endless loop of invoices at a clock change", "killbill 445",
             f"{T}/month_close/test_clock_changes.py"
             "::test_b6_closing_terminates_with_one_invoice_per_month_for_a_year",
             Mutant(CLOSING, "            status=OPEN,\n            held_at=None,", "            held_at=None,")),
    BugClass("B7", "accounts made before and after a clock change are billed otherwise", "killbill 1934",
             f"{T}/month_close/test_clock_changes.py::test_b7_the_date_of_the_first_usage_changes_no_invoice_total",
             Mutant("billing/services/periods/billing_periods.py",
                    "first = month_of(tenant.time_zone, since.astimezone(UTC))",
                    "first = Period(since.astimezone(UTC), since.astimezone(UTC) + timedelta(days=40))")),
    BugClass("B8", "an account that is not in UTC is billed a period again", "killbill 1856, 1981",
             f"{T}/rating/test_lease_rating.py::test_b8_a_time_zone_does_not_change_the_total_charge",
             Mutant(RATE, "greatest(p.s, p.since, month.since) AS s",
                    "greatest(p.s, p.since) AS s")),
    BugClass("B9", "the server's own zone moves periods", "killbill 150",
             f"{T}/month_close/test_clock_changes.py::test_b9_the_servers_time_zone_does_not_change_months_or_invoices",
             Mutant(PERIODS, "local = datetime(day.year, day.month, day.day, tzinfo=zone)",
                    "local = datetime(day.year, day.month, day.day)")),
    BugClass("B10", "use at a border is counted twice or never", "lago 5822, killbill 1438",
             f"{T}/rating/test_lease_rating.py::test_b10_usage_at_exactly_midnight_is_counted_once",
             Mutant(RATE, "least(p.e, p.until, month.until) AS e",
                    "least(p.e, p.until, month.until - interval '1 second') AS e")),
    BugClass("B11", "what was seen is marked before it is written: use is lost", "openmeter 5118",
             f"{T}/rating/test_rating_races.py"
             "::test_b11_usage_committed_after_a_rating_run_is_charged_by_the_next",
             Mutant(RATE, "SELECT id, xmin FROM changed_tenants",
                    "SELECT id, pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM changed_tenants")),
    BugClass("B12", "the key against doubles is off by accident", "openmeter 330, flexprice 2184",
             f"{T}/rating/test_lease_rating.py::test_b12_the_primary_key_of_charges_prevents_a_second_charge",
             Mutant("billing/migrations/0001_initial.py", '"correction_id",\n                        blank=True,',
                    '"correction_id", "recorded_at",\n                        blank=True,')),
    BugClass("B13", "a replay is recorded downstream again", "langfuse 16292",
             f"{T}/ledger/test_posting.py::test_b13_posting_again_writes_nothing",
             Mutant("billing/sql/ledger/post_transfers.sql", "      ON CONFLICT (idem) DO NOTHING\n", "")),
    BugClass("B14", "the same name with another payload is taken", "flexprice 612",
             f"{T}/ledger/test_posting.py::test_b14_a_transfer_key_with_another_amount_is_refused",
             Mutant("billing/services/ledger/posting.py", "if written < wanted and (others",
                    "if written > wanted and (others")),
    BugClass("B15", "a wallet is credited twice within milliseconds", "lago 3618",
             f"{T}/ledger/test_posting_races.py::test_b15_concurrent_workers_post_missing_transfers_once",
             Mutant("billing/sql/ledger/requested_transfers.sql", "debit, credit, minor, idem)\n",
                    "debit, credit, minor, told), LATERAL (SELECT told || clock_timestamp()::text AS idem) x\n")),
    BugClass("B16", "a wallet is below nothing", "lago 4985",
             f"{T}/ledger/test_constraints.py"
             "::test_b16_a_wallet_never_goes_negative_by_one_or_several_transfers",
             Mutant("billing/migrations/0001_initial.py", '("minor__gte", F("floor") + F("held_minor"))',
                    '("minor__gte", -(10**15))')),
    BugClass("B17", "what is not billed yet is taken off twice", "lago 2542",
             f"{T}/wallets/test_prepaid_holds.py"
             "::test_an_invoice_settles_the_holds_of_its_month_from_the_wallet",
             Mutant("billing/services/funds/wallets/prepaid_holds.py",
                    "        WalletPart.objects.filter(period=month).delete()\n",
                    "        pass\n")),
    BugClass("B18", "a top-up every five minutes", "lago 1962",
             f"{T}/topups/test_topups.py"
             "::test_b18_a_wallet_below_its_threshold_is_topped_up_automatically_once",
             Mutant("billing/services/payments/topups/automatic_topups.py", "actor=BILLING, now=now, window=window)",
                    "actor=BILLING, now=now, window=None)")),
    BugClass("B19", "a credit note is a cent more than its invoice", "lago 2643, 4411",
             f"{T}/domain/test_credit_notes.py::test_b19_partial_credits_in_any_order_add_up_to_the_lines",
             Mutant("billing/domain/credit_notes.py", "return max(self.minor - self.credited, 0)",
                    "return max(self.minor - self.credited + 1, 0)")),
    BugClass("B20", "what is negative is rounded otherwise", "india-compliance 4763",
             f"{T}/domain/test_tax.py::test_b20_tax_on_a_credit_mirrors_tax_on_the_charge",
             Mutant("billing/domain/money.py", "top, bottom = abs(numerator), abs(denominator)",
                    "sign, top, bottom = 1, numerator, denominator")),
    BugClass("B21", "tax of the lines is not the tax of the document", "invoiceninja 4370, erpnext 43143",
             f"{T}/tax/test_tax_determination.py"
             "::test_b21_e2_line_taxes_equal_the_largest_remainder_split",
             Mutant("billing/sql/invoicing/refresh_drafts.sql", "CASE WHEN nth <= tax - sum(down)",
                    "CASE WHEN nth < tax - sum(down)")),
    BugClass("B22", "yen times a hundred, dinars by a hundred", "InvoicePlane 1677, Paymenter 1258",
             f"{T}/domain/test_stripe_amounts.py",
             Mutant("billing/domain/stripe_amounts.py", "**dict.fromkeys(_NONE.split(), 0),",
                    "**dict.fromkeys(_NONE.split(), 2),")),
    BugClass("B23", "use between whole tiers", "lago 1699",
             f"{T}/domain/test_price_tiers.py::test_b23_usage_at_tier_boundaries_belongs_to_exactly_one_tier",
             Mutant("billing/domain/price_tiers.py", "(min(end, used) - start) * (self.nano_per_hour - price)",
                    "(min(end - HOUR, used) - start) * (self.nano_per_hour - price)")),
    BugClass("B24", "a change of what is leased within a day is billed twice", "killbill 877, 1987",
             f"{T}/rating/test_lease_rating.py"
             "::test_b24_an_offering_change_every_second_is_charged_to_the_second",
             Mutant(RATE, "SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, begun.offering_id,",
                    "SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, ended.offering_id,")),
    BugClass("B25", "yesterday is charged at today's price", "lago 218, 4760",
             f"{T}/rating/test_lease_rating.py::test_b25_b26_a_new_price_does_not_change_earlier_charges",
             Mutant(RATE, "greatest(p.s, p.since, month.since) AS s",
                    "greatest(p.s, month.since) AS s")),
    BugClass("B26", "a change of the catalogue bills what is past again", "killbill 1898",
             f"{T}/catalogue/test_price_list.py::test_b26_a_price_starting_in_the_past_is_refused",
             Mutant("billing/services/catalogue/price_list.py", "is_past, rises = start < now.replace(microsecond=0), ",
                    "is_past, rises = False, ")),
    BugClass("B27", "what was given back is billed again", "killbill 154, 159",
             f"{T}/credit_notes/test_credit_notes.py::test_b27_credited_usage_is_not_charged_again",
             Mutant(RATE, "     AND NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = ended.lease_id"
                    " AND c.seq = ended.prev_seq)\n", "")),
    BugClass("B28", "each recalculation takes a discount once more", "openmeter 2703",
             f"{T}/month_close/test_close_month.py::test_b28_refreshing_a_draft_again_changes_nothing",
             Mutant("billing/sql/invoicing/refresh_drafts.sql", "SET total = t.net + t.tax,",
                    "SET total = i.total + t.net + t.tax,")),
    BugClass("B29", "what comes late is passed over", "openmeter 4845, killbill 876",
             f"{T}/month_close/test_close_month.py"
             "::test_b29_b30_late_usage_is_on_the_next_invoice_and_not_the_closed_one",
             Mutant(RATE, "CASE WHEN p.status = 'open' THEN p.id", "CASE WHEN true THEN p.id")),
    BugClass("B30", "use between draft and final is lost", "authgear 2168, tuist 11903",
             f"{T}/month_close/test_close_month.py",
             Mutant(CLOSING, "unobserved = _split_running_leases(tenant, boundary, now)",
                    "unobserved: list[str] = []")),
    BugClass("B31", "a grant counts twice, or wrongly at its border", "openmeter 1408, 1071",
             f"{T}/grants/test_grant_payments.py::test_b31_a_grant_expiring_at_month_end_pays_the_whole_month",
             Mutant("billing/services/funds/grants/grant_payments.py",
                    "if each.expires_at and each.expires_at < month.span.upper",
                    "if each.expires_at and each.expires_at < month.span.lower")),
    BugClass("B32", "a webhook that comes twice counts twice", "pollinations 10621, open-saas 688",
             f"{T}/stripe/test_webhook_inbox.py::test_six_events_in_every_order_and_repetition_lead_to_one_state",
             Mutant("billing/services/payments/stripe/webhook_inbox.py",
                    "fresh = [row for row in rows if row.pk not in known]",
                    "fresh = rows")),
    BugClass("B33", "a stale webhook overrides what is newer", "Cogtrix 125, memories 402",
             f"{T}/stripe/test_webhook_inbox.py::test_the_status_of_a_stripe_dispute_never_goes_backwards",
             Mutant("billing/services/payments/stripe/event_effects.py",
                    "model.objects.filter(pk=row.pk, rank__lt=ranks[there.status])",
                    "model.objects.filter(pk=row.pk)")),
    BugClass("B34", "a webhook is faster than our own row", "lago 1373",
             f"{T}/stripe/test_webhook_inbox.py::test_an_event_before_its_payment_is_recorded_is_retried",
             Mutant("billing/services/payments/stripe/webhook_events.py",
                    "    except EventTooEarly as later:\n        _retry_later(event, str(later), now)\n", "")),
    BugClass("B35", "a state of the provider that is not known wedges an invoice", "lago 1223, 3876",
             f"{T}/domain/test_stripe_states.py::test_every_status_of_the_pinned_stripe_version_is_known",
             Mutant("billing/domain/stripe_states.py", '"paid": 3, "uncollectible": 3,', '"paid": 3,')),
    BugClass("B36", "numbers twice, or with gaps", "hitobito 4005, lago 2621",
             f"{T}/rating/test_rating_races.py::test_b36_concurrent_month_close_assigns_every_invoice_number_once",
             Mutant("billing/services/invoicing/finalization.py", "update(next_number=F(\"next_number\") + count)",
                    "update(next_number=F(\"next_number\") + count + 1)")),
    BugClass("B37", "the workload is gone and the meter runs on", "gpustack 6279",
             f"{T}/rating/test_lease_rating.py::test_b37_nothing_is_charged_after_the_recorded_end",
             Mutant(RATE, "begun.at AS s, ended.at AS e,", "begun.at AS s, ended.at + interval '1 hour' AS e,")),
    BugClass("B38", "the workload lives and is marked as ended", "dstack 1551",
             "tests/broker/services/reconciler/test_lease_reconciler.py::test_an_orphan_is_removed_and_a_live_lease_is_kept",
             Mutant("broker/services/clusters/orphan_removal.py",
                    "if state not in HOLDS_CAPACITY or generation != newest:",
                    "if generation > newest + 9:")),
    BugClass("B39", "a fraction is billed as a whole GPU", "gpustack 6054, 5710, 5681",
             "tests/broker/services/inventory/test_fleet_inventory.py::test_offerings_are_derived_once_from_the_installed_gpus",
             Mutant("broker/services/inventory/gpu_catalogue.py",
                    'return int(profile.name.partition("g.")[2].partition("gb")[0])', "return spec.memory_gb")),
    BugClass("B40", "the price that was shown is not the one that is billed", "dstack 1886, opencost 2901",
             f"{T}/quotes/test_quote_redemption.py::test_b40_the_quoted_price_is_charged_despite_later_price_changes",
             Mutant(RATE, "q.lease_id = begun.lease_id AND q.offering_id = begun.offering_id",
                    "q.lease_id = begun.lease_id AND false")),
    BugClass("B41", "parts of an hour are rounded up", "waldur get_full_hours",
             f"{T}/rating/test_lease_rating.py::test_b41_a_lease_of_one_second_is_charged_one_second",
             Mutant(RATE, "extract(epoch FROM e - s)::bigint * quantity AS unit_seconds",
                    "(ceil(extract(epoch FROM e - s) / 3600) * 3600)::bigint * quantity AS unit_seconds")),
    BugClass("B42", "a crash between what is rated and how far", "cloudkitty orchestrator.py",
             f"{T}/ledger/test_posting.py::test_b42_an_invoice_becomes_final_only_together_with_its_transfers",
             Mutant(CLOSING, "        posting.post_invoices([invoice.pk], now=now)\n", "        pass\n")),
    BugClass("B43", "a key of idempotency is used again for something else", "stripe-ruby 598",
             f"{T}/stripe/test_invoice_collection.py",
             Mutant("billing/gateways/stripe/commands.py", "f\"{subject}|{step}|{round_}|{attempt}|{params}\"",
                    "f\"{subject}|{round_}|{attempt}\"")),
    BugClass("B44", "binary fractions of money", "lago to_f, opencost float64",
             f"{T}/test_no_floats.py",
             Mutant("billing/domain/money.py", "scale: int = 10**exponent\n    return half_up",
                    "scale = float(10**exponent)\n    return half_up")),
)  # fmt: skip
