"""The bug classes that others had and we must not (B1 to B44), each with the test that names it and a mistake that,
once planted, that test finds. Their sources stand in the threads of the projects named: lago-api, killbill, openmeter
and others.

A mutant is a text of a file and what it is replaced with; the text stands there once. `python -m tests.mutants` plants
each in a copy and runs its test.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """What somebody could have written instead."""

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


RATE, PERIODS = "billing/sql/rate.sql", "billing/domain/periods.py"
CLOSING = "billing/services/closing.py"
T = "tests/billing"

CLASSES = (
    BugClass("B1", "two invoices: already billed? asked in UTC and not in the tenant's zone", "lago 879, 662",
             f"{T}/services/test_closing.py::test_b1_hourly_runs_around_midnight_make_one_invoice_in_every_zone",
             Mutant(PERIODS, "return max(local.astimezone(UTC), local.replace(fold=1).astimezone(UTC))",
                    "return local.replace(tzinfo=UTC)")),
    BugClass("B2", "a zone and an anchor make two invoices of one month", "lago 1074",
             f"{T}/services/test_periods.py::test_b2_b3_a_tenant_that_moves_gets_every_month_once_and_no_second_twice",
             Mutant("billing/services/periods.py", "INSIDE = timedelta(days=14)", "INSIDE = timedelta(0)")),
    BugClass("B3", "periods overlap or leave gaps, anchors 29 to 31", "lago 6173, killbill 127",
             f"{T}/domain/test_periods.py",
             Mutant(PERIODS, "day = min(anchor, monthrange(year, month + 1)[1])", "day = min(anchor, 28)")),
    BugClass("B4", "not billed for months after a short one", "killbill 127",
             f"{T}/services/test_closing.py::test_b4_a_lease_without_any_news_for_months_is_billed_every_month",
             Mutant(CLOSING, "    reaching.reach(now=now)\n    due = _due(now)", "    due = _due(now)")),
    BugClass("B5", "clock changes alter what a stretch comes to", "lago 1438, 1442",
             f"{T}/services/test_rating.py::test_b5_hours_of_clock_changes_are_charged_as_long_as_they_are",
             Mutant(RATE, "extract(epoch FROM e - s)::bigint * quantity AS unit_seconds",
                    "extract(epoch FROM (e AT TIME ZONE 'Europe/Berlin') - (s AT TIME ZONE 'Europe/Berlin'))::bigint"
                    " * quantity AS unit_seconds")),
    BugClass("B6", "an endless loop of invoices at a clock change", "killbill 445",
             f"{T}/services/test_clock_changes.py"
             "::test_b6_closing_ends_and_makes_one_invoice_a_month_through_a_whole_year",
             Mutant(CLOSING, "filter(status=OPEN, span__endswith__lte=now - GRACE)",
                    "filter(span__endswith__lte=now - GRACE)")),
    BugClass("B7", "accounts made before and after a clock change are billed otherwise", "killbill 1934",
             f"{T}/services/test_clock_changes.py::test_b7_the_day_an_account_was_made_changes_no_total",
             Mutant("billing/services/periods.py", "first = month_of(tenant.time_zone, since.astimezone(UTC))",
                    "first = Period(since.astimezone(UTC), since.astimezone(UTC) + timedelta(days=40))")),
    BugClass("B8", "an account that is not in UTC is billed a period again", "killbill 1856, 1981",
             f"{T}/services/test_rating.py::test_b8_a_time_zone_moves_only_the_month_of_a_second_never_the_sum",
             Mutant(RATE, "greatest(p.s, p.since, month.since) AS s",
                    "greatest(p.s, p.since) AS s")),
    BugClass("B9", "the server's own zone moves periods", "killbill 150",
             f"{T}/services/test_clock_changes.py::test_b9_the_servers_own_zone_moves_nothing",
             Mutant(PERIODS, "local = datetime(day.year, day.month, day.day, tzinfo=zone)",
                    "local = datetime(day.year, day.month, day.day)")),
    BugClass("B10", "use at a border is counted twice or never", "lago 5822, killbill 1438",
             f"{T}/services/test_rating.py::test_b10_use_at_exact_midnight_is_counted_once",
             Mutant(RATE, "least(p.e, p.until, month.until) AS e",
                    "least(p.e, p.until, month.until - interval '1 second') AS e")),
    BugClass("B11", "what was seen is marked before it is written: use is lost", "openmeter 5118",
             f"{T}/services/test_rating_races.py"
             "::test_b11_a_transaction_that_commits_after_the_run_is_charged_by_the_next",
             Mutant(RATE, "SELECT id, xmin FROM news",
                    "SELECT id, pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM news")),
    BugClass("B12", "the key against doubles is off by accident", "openmeter 330, flexprice 2184",
             f"{T}/services/test_rating.py::test_b12_the_key_that_forbids_a_second_charge_is_there",
             Mutant("billing/migrations/0043_corrections.py", "f\" ADD PRIMARY KEY ({', '.join(columns)});\"",
                    "f\" ADD PRIMARY KEY ({', '.join([*columns, 'recorded_at'])});\"")),
    BugClass("B13", "a replay is recorded downstream again", "langfuse 16292",
             f"{T}/ledger/test_posting.py::test_b13_posting_again_writes_nothing",
             Mutant("billing/sql/ledger_post.sql", "      ON CONFLICT (idem) DO NOTHING\n", "")),
    BugClass("B14", "the same name with another payload is taken", "flexprice 612",
             f"{T}/ledger/test_posting.py::test_b14_the_same_name_with_another_amount_is_refused",
             Mutant("billing/services/ledger/posting.py", "if written < wanted and (others",
                    "if written > wanted and (others")),
    BugClass("B15", "a wallet is credited twice within milliseconds", "lago 3618",
             f"{T}/ledger/test_workers.py::test_b15_what_many_workers_find_missing_is_booked_once",
             Mutant("billing/sql/ledger_wanted.sql", "debit, credit, minor, idem)\n",
                    "debit, credit, minor, told), LATERAL (SELECT told || clock_timestamp()::text AS idem) x\n")),
    BugClass("B16", "a wallet is below nothing", "lago 4985",
             f"{T}/ledger/test_promises.py"
             "::test_b16_a_wallet_never_goes_below_nothing_however_many_transfers_come_at_once",
             Mutant("billing/migrations/0010_ledger.py",
                    "('minor__gte', django.db.models.expressions.CombinedExpression(models.F('floor'), '+',"
                    " models.F('held_minor')))", "('minor__gte', -10**15)")),
    BugClass("B17", "what is not billed yet is taken off twice", "lago 2542",
             f"{T}/wallets/test_covering.py"
             "::test_an_invoice_takes_its_month_off_the_wallet_and_the_money_with_it",
             Mutant("billing/services/wallets/covering.py",
                    "        WalletPart.objects.filter(period=month).delete()\n",
                    "        pass\n")),
    BugClass("B18", "a top-up every five minutes", "lago 1962",
             f"{T}/topups/test_topping_up.py"
             "::test_b18_below_its_threshold_a_wallet_is_topped_up_by_itself_once",
             Mutant("billing/services/topups/by_itself.py", "actor=BILLING, now=now, window=window)",
                    "actor=BILLING, now=now, window=None)")),
    BugClass("B19", "a credit note is a cent more than its invoice", "lago 2643, 4411",
             f"{T}/domain/test_crediting.py::test_b19_any_parts_in_any_order_give_back_exactly_all_of_it",
             Mutant("billing/domain/crediting.py", "return max(self.minor - self.credited, 0)",
                    "return max(self.minor - self.credited + 1, 0)")),
    BugClass("B20", "what is negative is rounded otherwise", "india-compliance 4763",
             f"{T}/domain/test_tax.py::test_b20_tax_on_what_is_given_back_mirrors_tax_on_what_was_charged",
             Mutant("billing/domain/money.py", "top, bottom = abs(numerator), abs(denominator)",
                    "sign, top, bottom = 1, numerator, denominator")),
    BugClass("B21", "tax of the lines is not the tax of the document", "invoiceninja 4370, erpnext 43143",
             f"{T}/domain/test_tax.py::test_b21_the_lines_come_to_the_tax_of_their_category",
             Mutant("billing/domain/tax.py", "missing = tax_of(sum(lines), rate_bp) - sum(parts)", "missing = 0")),
    BugClass("B22", "yen times a hundred, dinars by a hundred", "InvoicePlane 1677, Paymenter 1258",
             f"{T}/domain/test_stripe_amounts.py",
             Mutant("billing/domain/stripe_amounts.py", "**dict.fromkeys(_NONE.split(), 0),",
                    "**dict.fromkeys(_NONE.split(), 2),")),
    BugClass("B23", "use between whole tiers", "lago 1699",
             f"{T}/domain/test_tiers.py::test_b23_use_at_and_between_the_borders_of_tiers_falls_into_one",
             Mutant("billing/domain/tiers.py", "(min(end, used) - start) * (self.nano_per_hour - price)",
                    "(min(end - HOUR, used) - start) * (self.nano_per_hour - price)")),
    BugClass("B24", "a change of what is leased within a day is billed twice", "killbill 877, 1987",
             f"{T}/services/test_rating.py"
             "::test_b24_an_offering_that_changes_every_second_is_charged_second_by_second",
             Mutant(RATE, "SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, begun.offering_id,",
                    "SELECT begun.lease_id, begun.seq, begun.tenant_id, begun.project_id, ended.offering_id,")),
    BugClass("B25", "yesterday is charged at today's price", "lago 218, 4760",
             f"{T}/services/test_rating.py::test_b25_b26_a_new_price_leaves_yesterday_at_the_old_one",
             Mutant(RATE, "greatest(p.s, p.since, month.since) AS s",
                    "greatest(p.s, month.since) AS s")),
    BugClass("B26", "a change of the catalogue bills what is past again", "killbill 1898",
             f"{T}/services/test_prices.py::test_b26_the_past_keeps_its_price",
             Mutant("billing/services/prices.py", "if since < now or running.valid.lower == since",
                    "if running.valid.lower == since")),
    BugClass("B27", "what was given back is billed again", "killbill 154, 159",
             f"{T}/credits/test_crediting.py::test_b27_what_was_given_back_is_not_charged_again",
             Mutant(RATE, "     AND NOT EXISTS (SELECT FROM billing_ratedcharge c WHERE c.lease_id = ended.lease_id"
                    " AND c.seq = ended.prev_seq)\n", "")),
    BugClass("B28", "each recalculation takes a discount once more", "openmeter 2703",
             f"{T}/services/test_closing.py::test_b28_refreshing_again_changes_nothing",
             Mutant("billing/sql/draft.sql", "SET total = t.net + t.tax,", "SET total = i.total + t.net + t.tax,")),
    BugClass("B29", "what comes late is passed over", "openmeter 4845, killbill 876",
             f"{T}/services/test_closing.py"
             "::test_b29_b30_late_seconds_go_on_the_next_invoice_and_leave_the_closed_one_alone",
             Mutant(RATE, "CASE WHEN p.status = 'open' THEN p.id", "CASE WHEN true THEN p.id")),
    BugClass("B30", "use between draft and final is lost", "authgear 2168, tuist 11903",
             f"{T}/services/test_closing.py",
             Mutant(CLOSING, "    _tick(tenant, border)\n    rating", "    rating")),
    BugClass("B31", "a grant counts twice, or wrongly at its border", "openmeter 1408, 1071",
             f"{T}/grants/test_drawing.py::test_b31_a_grant_that_ends_with_the_month_pays_the_whole_month",
             Mutant("billing/services/grants/drawing.py",
                    "if each.expires_at and each.expires_at < month.span.upper",
                    "if each.expires_at and each.expires_at < month.span.lower")),
    BugClass("B32", "a webhook that comes twice counts twice", "pollinations 10621, open-saas 688",
             f"{T}/stripe/test_inbox.py::test_six_events_in_all_orders_and_five_times_each_lead_to_one_state",
             Mutant("billing/services/stripe/inbox.py", "fresh = [row for row in rows if row.pk not in known]",
                    "fresh = rows")),
    BugClass("B33", "a stale webhook overrides what is newer", "Cogtrix 125, memories 402",
             f"{T}/stripe/test_inbox.py::test_a_dispute_goes_on_and_never_back",
             Mutant("billing/services/stripe/applying.py",
                    "model.objects.filter(pk=row.pk, rank__lt=ranks[there.status])",
                    "model.objects.filter(pk=row.pk)")),
    BugClass("B34", "a webhook is faster than our own row", "lago 1373",
             f"{T}/stripe/test_inbox.py::test_an_event_before_our_own_row_waits_for_it",
             Mutant("billing/services/stripe/working.py",
                    "    except TooEarly as later:\n        _later(event, str(later), now)\n", "")),
    BugClass("B35", "a state of the provider that is not known wedges an invoice", "lago 1223, 3876",
             f"{T}/domain/test_stripe_states.py::test_no_word_of_the_pinned_version_is_missing",
             Mutant("billing/domain/stripe_states.py", '"paid": 3, "uncollectible": 3,', '"paid": 3,')),
    BugClass("B36", "numbers twice, or with gaps", "hitobito 4005, lago 2621",
             f"{T}/services/test_rating_races.py::test_b36_workers_that_close_at_once_hand_out_every_number_once",
             Mutant("billing/services/numbering.py", "update(next_number=F(\"next_number\") + count)",
                    "update(next_number=F(\"next_number\") + count + 1)")),
    BugClass("B37", "the workload is gone and the meter runs on", "gpustack 6279",
             f"{T}/services/test_rating.py::test_b37_nothing_is_charged_beyond_the_end_that_is_written",
             Mutant(RATE, "begun.at AS s, ended.at AS e,", "begun.at AS s, ended.at + interval '1 hour' AS e,")),
    BugClass("B38", "the workload lives and is marked as ended", "dstack 1551",
             "tests/broker/services/test_live_lease.py::test_an_orphan_is_removed_and_what_lives_is_left",
             Mutant("broker/services/orphans.py", "if state not in HOLDS_CAPACITY or generation != newest:",
                    "if generation > newest + 9:")),
    BugClass("B39", "a fraction is billed as a whole card", "gpustack 6054, 5710, 5681",
             "tests/broker/services/test_inventory.py::test_offerings_are_derived_once_from_what_stands_there",
             Mutant("broker/services/catalogue.py",
                    'return int(profile.name.partition("g.")[2].partition("gb")[0])', "return spec.memory_gb")),
    BugClass("B40", "the price that was shown is not the one that is billed", "dstack 1886, opencost 2901",
             f"{T}/services/test_citing.py::test_b40_the_price_that_was_shown_is_the_price_that_is_charged",
             Mutant(RATE, "q.lease_id = begun.lease_id AND q.offering_id = begun.offering_id",
                    "q.lease_id = begun.lease_id AND false")),
    BugClass("B41", "parts of an hour are rounded up", "waldur get_full_hours",
             f"{T}/services/test_rating.py::test_b41_a_lease_of_one_second_costs_one_second",
             Mutant(RATE, "extract(epoch FROM e - s)::bigint * quantity AS unit_seconds",
                    "(ceil(extract(epoch FROM e - s) / 3600) * 3600)::bigint * quantity AS unit_seconds")),
    BugClass("B42", "a crash between what is rated and how far", "cloudkitty orchestrator.py",
             f"{T}/ledger/test_posting.py::test_b42_an_invoice_is_final_only_together_with_its_transfers",
             Mutant(CLOSING, "        posting.finalized([invoice.pk], now=now)\n", "        pass\n")),
    BugClass("B43", "a key of idempotency is used again for something else", "stripe-ruby 598",
             f"{T}/stripe/test_collecting.py",
             Mutant("billing/gateways/stripe/commands.py", "f\"{subject}|{step}|{round_}|{attempt}|{params}\"",
                    "f\"{subject}|{round_}|{attempt}\"")),
    BugClass("B44", "binary fractions of money", "lago to_f, opencost float64",
             f"{T}/test_no_floats.py",
             Mutant("billing/domain/money.py", "scale: int = 10**exponent\n    return half_up",
                    "scale = float(10**exponent)\n    return half_up")),
)  # fmt: skip
